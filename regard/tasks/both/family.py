"""The same stack under three masks, on the same text: what `regard compare --task both` sets side by side.

Every variant is scored on both: what comes next, which a causal mask must know, and what stood in gaps, which
only places that see both ways can. The text is the Python standard library, as for language models.
"""

from pathlib import Path
from typing import Any

from regard.tasks.language.family import library as modules
from regard.tasks.task import Family

VARIANTS: dict[str, dict[str, Any]] = {
    "causal": {"both.masked": 0.0},
    "full": {"both.masked": 1.0},
    "both": {"both.masked": 0.5},
}
SETTINGS: dict[str, Any] = {
    "model.decoder_layers": 2,
    "model.d_ff": 256,
    "positions.kind": "rotary",
    "text.vocab_size": 2000,
    "data.context": 96,
}


def library(folder: Path) -> tuple[dict[str, list[Path]], dict[str, Any]]:
    """The modules of this Python as a text a split, and settings that suit words."""
    files, _ = modules(folder)
    return files, SETTINGS


FAMILY = Family(VARIANTS, "regard.tasks.both.family:library")
