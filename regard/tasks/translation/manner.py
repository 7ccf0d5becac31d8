"""How one call wants its lines translated, and who may stand in for the searches: values and protocols.

Before this file: `regard.decoding.way`; after it: `translator.py`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypedDict

from regard.config import DecodeConfig
from regard.decoding.sampling import Sampling
from regard.decoding.search import Hypothesis, Rules
from regard.decoding.way import Spelling, Wanted
from regard.errors import UsageError


@dataclass(frozen=True)
class Manner:
    """How one call wants its lines translated."""

    decode: DecodeConfig
    n_best: int = 1
    batch_size: int = 32
    window: int = 0  # lines read ahead; 0: WINDOW batches
    sampling: Sampling | None = None
    length: int | None = None  # tokens of each output, exactly
    max_chars: int | None = None  # of each output
    rescorer: "Rescorer | None" = None

    def __post_init__(self) -> None:
        for name, low, high in (("n_best", 1, 1000), ("batch_size", 1, 2**16), ("window", 0, 2**20)):
            if not low <= getattr(self, name) <= high:
                raise UsageError(f"{name} ({getattr(self, name)}) must be at least {low} and at most {high}")

    def wanted(self, spelling: Callable[[], Spelling]) -> Wanted:
        """What a search is asked for."""
        counted = spelling() if self.max_chars is not None else None
        return Wanted(
            self.decode,
            self.n_best,
            self.sampling,
            self.length,
            self.max_chars,
            counted,
            every=self.rescorer is not None,
        )


class More(TypedDict, total=False):
    """What `stream` takes beside its own parameters, for models that write all at once."""

    iterations: int | None  # times that all is written; the folder's if not named
    lengths: int | None  # lengths that are tried
    length: int | None  # tokens of each output, exactly
    max_chars: int | None  # characters of each output, at most
    rescorer: "Rescorer | None"  # another model that has the last word on which output is the best


class Rescorer(Protocol):
    """Who judges outputs: see `rescore.py`."""

    def __call__(
        self, sources: Sequence[Sequence[int]], found: Sequence[Sequence[Hypothesis]]
    ) -> list[list[Hypothesis]]:
        """The outputs of each source with other scores, best first."""
        ...


class Searcher(Protocol):
    """What can stand in for the readable searches: `regard.engine` has two."""

    def answer(
        self, sources: Sequence[Sequence[int]], rules: Rules, wanted: Wanted, *, batch_size: int
    ) -> list[list[Hypothesis]]:
        """The outputs of each source, which closes with its end token; best first."""
        ...
