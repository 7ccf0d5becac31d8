"""The family of language models that `regard compare` sets side by side, on the Python standard library.

Every module is for training, validation or test by its name (`regard.text.docstrings`), so that all variants
of all comparisons are scored on code that none of them has read.
"""

import tokenize
from pathlib import Path
from typing import Any

from regard.tasks.task import Family
from regard.text.docstrings import SPLITS, modules, split_of

VARIANTS: dict[str, dict[str, Any]] = {
    "decoder": {},
    "learned": {"positions.kind": "learned"},
    "sinusoidal": {"positions.kind": "sinusoidal"},
    "relative": {"positions.kind": "relative"},
    "alibi": {"positions.kind": "alibi"},
    "no positions": {"positions.kind": "none"},
    "dot": {"attention.score": "dot"},
    "cosine": {"attention.score": "cosine"},
    "additive": {"attention.score": "additive"},
    "general": {"attention.score": "general"},
    "local": {"attention.kind": "local", "attention.window": 16},
    "1 head": {"model.n_heads": 1},
    "8 heads": {"model.n_heads": 8},
    "multi-query": {"model.kv_heads": 1},
    "post-norm": {"model.norm": "post"},
    "rms": {"model.norm": "pre-rms"},
    "gelu": {"model.activation": "gelu"},
    "relu2": {"model.activation": "relu2"},
    "swiglu": {"model.activation": "swiglu"},
}
SETTINGS: dict[str, Any] = {
    "model.decoder_layers": 2,
    "model.d_ff": 256,
    "positions.kind": "rotary",
    "text.units": "characters",
    "data.context": 128,
}
MOST = {"train": 4_000_000, "valid": 40_000, "test": 200_000}  # characters


def library(folder: Path) -> tuple[dict[str, list[Path]], dict[str, Any]]:
    """The modules of this Python as a text a split, and settings that suit them."""
    texts: dict[str, list[str]] = {split: [] for split in SPLITS}
    left = dict(MOST)
    for path, name in modules():
        split = split_of(name)
        if left[split] <= 0:
            continue
        try:
            with tokenize.open(path) as file:
                text = file.read()
        except (OSError, SyntaxError, ValueError):  # no Python that could be read
            continue
        texts[split].append(text)
        left[split] -= len(text)
    found = {split: folder / f"{split}.py.txt" for split in SPLITS}
    for split, path in found.items():
        path.write_text("\n".join(texts[split]), encoding="utf-8", errors="replace", newline="\n")
    return {split: [path] for split, path in found.items()}, SETTINGS


FAMILY = Family(VARIANTS, "regard.tasks.language.family:library")
