"""The family of generators that `regard compare --task gan` sets side by side, on digits of many fonts.

One change each: where a map attends, or that none does, by how many heads, and how they score.
"""

from pathlib import Path
from typing import Any

from regard.tasks.gan.demo import SETTINGS, write_digits
from regard.tasks.task import Family

VARIANTS: dict[str, dict[str, Any]] = {
    "attention": {},
    "none": {"gan.attend": 0},
    "smaller map": {"gan.attend": 7},
    "1 head": {"model.n_heads": 1},
    "4 heads": {"model.n_heads": 4},
    "cosine": {"attention.score": "cosine"},
}
COUNTS = {"train": 6000, "valid": 1000, "test": 2000}


def drawn(folder: Path) -> tuple[dict[str, list[Path]], dict[str, Any]]:
    """Digits, a file a split, and settings that suit them."""
    files = {
        part: [write_digits(folder / f"{part}.digits.npz", count, seed)]
        for seed, (part, count) in enumerate(COUNTS.items(), 1)
    }
    return files, SETTINGS


FAMILY = Family(VARIANTS, "regard.tasks.gan.family:drawn")
