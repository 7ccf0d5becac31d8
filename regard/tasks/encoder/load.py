"""A reader that uses the engine where it can, and says where it cannot.

Before this file: `reader.py` and `regard.engine`; after it: the tasks of encoders, which load by it.
"""

from regard.engine.encoder import PackedEncoder
from regard.engine.engine import left_aside
from regard.engine.weights import READS
from regard.tasks.encoder.reader import Reader


def equip(reader: Reader, *, precision: str = "auto", engine: str = "auto") -> None:
    """Give a reader the engine, or the note that says why it has none.

    `precision`: int8, bf16, fp32, or auto for the fastest that keeps the quality. `engine`: native, readable,
    or auto for native where it knows the model.
    """
    reason = left_aside(reader.body, READS, precision=precision, engine=engine)
    if reason is None:
        reader.engine = PackedEncoder(reader.body, precision=precision)
    elif engine != "readable":
        reader.note = f"the readable encoder reads, in fp32: no native engine, {reason}"
