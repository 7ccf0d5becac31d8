"""What decoding asks of a model, and nothing more: `start` once a batch, `step` once a token.

Any object with these two methods can be searched, whatever is inside it: `table.py` is the smallest,
`transformer.py` the one that is trained. After this file: `regard.decoding.search`.
"""

from typing import Protocol, Self, TypeVar

from torch import Tensor


class State(Protocol):
    """Where a batch of decodings stands; a value with one row a hypothesis."""

    def select(self, rows: Tensor) -> Self:
        """The given rows (R,) in that order; rows may be repeated, reordered and dropped."""
        ...


S = TypeVar("S", bound=State)


class Seq2Seq(Protocol[S]):
    """A model that reads a source and writes a target token by token."""

    @property
    def max_length(self) -> int | None:
        """The longest sequence that it has positions for, on either side; None: any."""
        ...

    def start(self, src: Tensor, src_mask: Tensor) -> S:
        """Read the sources (B, S), real where src_mask (B, S) is True."""
        ...

    def step(self, ids: Tensor, state: S) -> tuple[Tensor, S]:
        """Read the newest ids (B,); give the logits (B, V) in fp32 of what comes next."""
        ...
