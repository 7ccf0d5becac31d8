"""The family of classifiers of pictures that `regard compare --task image` sets side by side, on glyphs.

One change each: positions, stem, pooling, the theorem as a start, and what attention replaced.
"""

from pathlib import Path
from typing import Any

from regard.tasks.image.demo import SETTINGS as DEMO
from regard.tasks.image.demo import write_glyphs
from regard.tasks.task import Family

VARIANTS: dict[str, dict[str, Any]] = {
    "attention": {},
    "convolution": {"model.kind": "conv", "model.decoder_layers": 1},
    "theorem": {
        "image.start": "convolution",
        "positions.kind": "quadratic",
        "model.n_heads": 9,
        "model.d_model": 72,
    },
    "quadratic": {"positions.kind": "quadratic", "model.n_heads": 9, "model.d_model": 72},
    "sinusoidal": {"positions.kind": "sinusoidal"},
    "rotary": {"positions.kind": "rotary"},
    "relative": {"positions.kind": "relative"},
    "no positions": {"positions.kind": "none"},
    "patches": {"image.stem": "patches"},
    "mean": {"image.pooling": "mean"},
    "1 head": {"model.n_heads": 1},
}
SETTINGS: dict[str, Any] = DEMO | {"model.d_model": 64, "model.d_ff": 192, "model.encoder_layers": 3}
COUNTS = {"train": 4650, "valid": 465, "test": 930}


def drawn(folder: Path) -> tuple[dict[str, list[Path]], dict[str, Any]]:
    """Glyphs, a file a split, and settings that suit them."""
    files = {
        part: [write_glyphs(folder, part, count, seed)]
        for seed, (part, count) in enumerate(COUNTS.items(), 1)
    }
    return files, SETTINGS


FAMILY = Family(VARIANTS, "regard.tasks.image.family:drawn")
