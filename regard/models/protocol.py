"""What decoding asks of a model, and nothing more: `start` once a batch, `step` once a token.

Any object with these two methods can be searched, whatever is inside it: `table.py` is the smallest,
`transformer.py` the one that is trained. After this file: `regard.decoding.search`.
"""

from typing import Protocol, Self, TypeVar

from torch import Tensor

from regard.data.inputs import Inputs


class StepState(Protocol):
    """Where a batch of decodings stands; a value with one row a hypothesis."""

    def select(self, rows: Tensor) -> Self:
        """The given rows (R,) in that order; rows may be repeated, reordered and dropped."""
        ...


S = TypeVar("S", bound=StepState)
In_contra = TypeVar("In_contra", bound=Inputs, contravariant=True)


class Stepper(Protocol[In_contra, S]):
    """A model that reads its inputs and writes token by token."""

    @property
    def max_length(self) -> int | None:
        """The longest sequence that it has positions for, on either side; None: any."""
        ...

    def start(self, inputs: In_contra) -> S:
        """Read the inputs of every row: a source, or the beginning of what is to be written on."""
        ...

    def step(self, ids: Tensor, state: S) -> tuple[Tensor, S]:
        """Read the newest ids (B,); give the logits (B, V) in fp32 of what comes next."""
        ...
