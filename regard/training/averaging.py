"""The average of the weights, which is what is validated and kept; the raw weights go on training.

"ema" is an exponential average whose memory grows with the run (polynomial decay, Shamir and Zhang
2013): after t steps it looks back over `span` * t of them, so no length of run has to be known.
"last" is the mean of the last few snapshots, as in Vaswani et al. 2017, section 6.1. "none" is the
weights as they are. An average is a pure function of the steps taken, so it resumes exactly.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

SNAPSHOTS = 5


class Average:
    """Base of all averages; as it stands, the weights themselves."""

    def __init__(self, weights: Sequence[Tensor]) -> None:
        self.weights = list(weights)

    def update(self, step: int, progress: float) -> None:
        """Take the weights after `step` steps (counted from 1) into the average."""

    def mean(self) -> list[Tensor]:
        """The averaged weights, in the order of the weights."""
        return self.weights

    def tensors(self) -> dict[str, Tensor]:
        """What a checkpoint has to hold."""
        return {}

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Take back what `tensors` gave."""


class ExponentialAverage(Average):
    """average += (weights - average) / (1 + span * t) after step t."""

    def __init__(self, weights: Sequence[Tensor], span: float) -> None:
        super().__init__(weights)
        self.span = span
        self.average = [weight.detach().clone() for weight in weights]

    @torch.no_grad()
    def update(self, step: int, progress: float) -> None:
        torch._foreach_lerp_(self.average, self.weights, 1 / (1 + self.span * step))

    def mean(self) -> list[Tensor]:
        return self.average

    def tensors(self) -> dict[str, Tensor]:
        return {str(i): tensor for i, tensor in enumerate(self.average)}

    def load(self, tensors: dict[str, Tensor]) -> None:
        for i, tensor in enumerate(self.average):
            tensor.copy_(tensors[str(i)])


class LastAverage(Average):
    """The mean of the last few snapshots, taken evenly over the last `span` of the progress."""

    def __init__(self, weights: Sequence[Tensor], span: float) -> None:
        super().__init__(weights)
        self.spacing = span / SNAPSHOTS
        self.taken = 0
        self.snapshots: list[list[Tensor]] = []

    def update(self, step: int, progress: float) -> None:
        due = int(progress / self.spacing + 1e-9) if self.spacing else step
        if due <= self.taken:
            return
        self.taken = due
        self.snapshots = [
            *self.snapshots[-(SNAPSHOTS - 1) :],
            [weight.detach().clone() for weight in self.weights],
        ]

    @torch.no_grad()
    def mean(self) -> list[Tensor]:
        if not self.snapshots:
            return self.weights
        total = [tensor.clone() for tensor in self.snapshots[0]]
        for snapshot in self.snapshots[1:]:
            torch._foreach_add_(total, snapshot)
        torch._foreach_div_(total, len(self.snapshots))
        return total

    def tensors(self) -> dict[str, Tensor]:
        held = {f"{n}.{i}": t for n, snapshot in enumerate(self.snapshots) for i, t in enumerate(snapshot)}
        return held | {"taken": torch.tensor(self.taken)}

    def load(self, tensors: dict[str, Tensor]) -> None:
        self.taken = int(tensors["taken"])
        count = (len(tensors) - 1) // len(self.weights)
        self.snapshots = [
            [tensors[f"{n}.{i}"].to(weight.device) for i, weight in enumerate(self.weights)]
            for n in range(count)
        ]


def build_average(kind: str, weights: Sequence[Tensor], span: float) -> Average:
    """The average named by `train.average`."""
    if kind == "ema":
        return ExponentialAverage(weights, span)
    if kind == "last":
        return LastAverage(weights, span)
    assert kind == "none", kind
    return Average(weights)


@contextmanager
def holding(weights: Sequence[Tensor], values: Sequence[Tensor]) -> Iterator[None]:
    """The weights are `values` inside the block, and exactly what they were after it."""
    own = [weight.data for weight in weights]
    for weight, value in zip(weights, values, strict=True):
        weight.data = value.data
    try:
        yield
    finally:
        for weight, data in zip(weights, own, strict=True):
            weight.data = data


class Best:
    """The averaged weights of the best validation, for runs that may stop by patience."""

    def __init__(self) -> None:
        self.weights: list[Tensor] = []

    def keep(self, weights: Sequence[Tensor]) -> None:
        self.weights = [weight.detach().clone() for weight in weights]

    def tensors(self) -> dict[str, Tensor]:
        return {str(i): tensor for i, tensor in enumerate(self.weights)}

    def load(self, tensors: dict[str, Tensor], device: torch.device) -> None:
        self.weights = [tensors[str(i)].to(device) for i in range(len(tensors))]
