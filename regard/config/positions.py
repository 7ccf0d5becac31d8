"""How the model knows the order of its tokens: a word of `POSITIONS` (`regard.kinds`)."""

from dataclasses import dataclass

from regard.config.rules import between, one_of, rule
from regard.kinds import POSITIONS

POSITION_KINDS = tuple(POSITIONS.own)
BASE = 10000.0  # of the paper
ON_SCORES = ("relative", "structural", "alibi", "quadratic")  # these act on the score of every pair


@dataclass(frozen=True)
class PositionsConfig:
    """How the model knows the order of its tokens."""

    kind: str = "sinusoidal"
    max_length: int = 1024  # longest sequence that learned positions can hold
    clip: int = 16  # relative and structural: distances beyond this one count as this one
    base: float = BASE  # sinusoidal: the slowest wave turns so many times slower than the first

    def __post_init__(self) -> None:
        one_of("positions.kind", self.kind, POSITIONS)
        between("positions.clip", self.clip, 1, 65536)
        between("positions.max_length", self.max_length, 1, 1_000_000)
        between("positions.base", self.base, 1.0, 1e9)
        rule(
            self.base == BASE or self.kind == "sinusoidal",
            f"positions.base ({self.base:g}) means nothing to positions.kind={self.kind}; "
            f"it is for sinusoidal, leave it at {BASE:g}",
        )
