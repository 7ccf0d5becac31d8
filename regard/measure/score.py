"""A score, by itself: its value, whether more of it is better, and what it depends on.

Whatever measures gives a mapping of them by name; training, cards, tables and pages show what they are given.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Score:
    """One number that says how good something is.

    >>> Score(31.234, label="BLEU", digits=1).words("bleu")
    'BLEU 31.2'
    """

    value: float
    higher: bool = True  # whether more is better
    label: str = ""  # what people call it; its name where that is the same
    digits: int = 3
    signature: str = ""  # all that it depends on, so that it can be compared
    count: int = 0  # examples that it was measured on; 0: not said

    @property
    def finite(self) -> bool:
        """Whether it is a number at all."""
        return math.isfinite(self.value)

    def beats(self, other: float | None) -> bool:
        """Whether it is better than another value, or the first."""
        return other is None or (self.value > other if self.higher else self.value < other)

    def words(self, name: str) -> str:
        """For people."""
        return f"{self.label or name} {self.value:.{self.digits}f}"


def as_tree(scores: Mapping[str, Score]) -> dict[str, Any]:
    """Scores as plain values, for JSON."""
    return {name: asdict(score) for name, score in scores.items()}


def of_tree(tree: Mapping[str, Any]) -> dict[str, Score]:
    """What `as_tree` gave."""
    return {name: Score(**values) for name, values in tree.items()}
