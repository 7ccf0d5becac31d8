"""Text pairs become batches of ids: corpus -> filter -> store -> sampler -> batch.

`corpus` reads the files, `filter` says what is left out, `store` keeps the ids on disk, `sampler`
orders them, `batch` makes tensors. `check` reports on a corpus. Comes after text, before attention.
"""
