"""The family of recognisers that `regard compare --task speech` sets side by side, on calls made on the spot.

Full attention against truncated windows, with and without CTC, and what attention replaced. What a variant
hears ahead stands in its table, for a window costs delay where it saves time.
"""

from pathlib import Path
from typing import Any

from regard.audio.tones import PITCH, write_calls
from regard.tasks.task import Family

VARIANTS: dict[str, dict[str, Any]] = {
    "truncated": {},
    "full": {"attention.kind": "full", "attention.ahead": -1},
    "no look-ahead": {"attention.ahead": 0},
    "narrow": {"attention.window": 8, "attention.ahead": 2},
    "without CTC": {"speech.ctc": 0.0},
    "mostly CTC": {"speech.ctc": 0.7},
    "conv": {"speech.encoder": "conv", "attention.kind": "full", "attention.ahead": -1},
    "recurrent": {"speech.encoder": "recurrent", "attention.kind": "full", "attention.ahead": -1},
    "frames": {"speech.front": "frames"},
    "plain recordings": {f"speech.{key}": 0.0 for key in ("speed", "throat", "colour", "noise", "mask")},
}
SETTINGS: dict[str, Any] = PITCH | {
    "model.encoder_layers": 3,
    "model.decoder_layers": 1,
    "train.batch_tokens": 512,
}
SIZES = {"train": 1500, "valid": 60, "test": 200}  # calls


def calls(folder: Path) -> tuple[dict[str, list[Path]], dict[str, Any]]:
    """Calls for each split, and settings that suit them."""
    files, first = {}, 0
    for split, count in SIZES.items():
        files[split] = [write_calls(folder / split, first, count)]
        first += count
    return files, SETTINGS


FAMILY = Family(VARIANTS, "regard.tasks.speech.family:calls")
