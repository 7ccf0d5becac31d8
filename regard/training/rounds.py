"""Rounds: processes that move by themselves for some steps, then meet (DiLoCo, Douillard et al. 2023).

    pull = weights at the start of the round - mean of the weights that all have now
    weights = start - pull                                               the mean itself, without momentum
    speed = m speed + pull        weights = start - 0.7 (pull + m speed)         m: train.outer_momentum

A link carries the weights once in `train.outer_every` steps, not gradients in each. What comes of it depends
on how many processes there are, and is not what one process gives. Asked by `loop.py`, between two steps.
"""

import dataclasses
import json
import math
from collections.abc import Sequence

import torch
from torch import Tensor

from regard.errors import UsageError
from regard.foreign import loads
from regard.training.checkpoint import Checkpoint
from regard.training.sums import Node
from regard.training.world import World

RATE = 0.7  # of a move with momentum: that of the paper's section 3


class Rounds:
    """What is remembered from one meeting to the next."""

    def __init__(
        self,
        weights: Sequence[Tensor],
        every: int,
        world: World,
        kind: torch.dtype = torch.float32,
        momentum: float = 0.0,
    ) -> None:
        self.weights, self.every, self.world, self.kind = list(weights), every, world, kind
        self.momentum = momentum
        self.start = [weight.detach().clone() for weight in weights]
        self.speed = [torch.zeros_like(weight) for weight in self.start] if momentum else []

    @torch.no_grad()
    def meet(self) -> None:
        """One step of the outer optimiser; all processes have the same weights after it."""
        pulls = self._mean(torch._foreach_sub(self.start, self.weights))
        if self.momentum:
            torch._foreach_mul_(self.speed, self.momentum)
            torch._foreach_add_(self.speed, pulls)
            torch._foreach_add_(pulls, self.speed, alpha=self.momentum)
        torch._foreach_add_(self.start, pulls, alpha=-RATE if self.momentum else -1.0)
        for weight, value in zip(self.weights, self.start, strict=True):
            weight.copy_(value)

    def _mean(self, values: Sequence[Tensor]) -> list[Tensor]:
        """The mean over processes, summed in the order of `sums.py`."""
        flat = torch.cat([value.reshape(-1) for value in values])
        chunk = math.ceil(len(flat) / self.world.size)
        padded = torch.nn.functional.pad(flat, (0, chunk * self.world.size - len(flat)))
        lengths = [chunk] * self.world.size
        mine = self.world.scattered(
            [Node(self.world.rank, 1, [padded])], self.world.size, lengths, flat.device, self.kind
        )
        whole = torch.cat(self.world.gathered(mine / self.world.size, lengths, self.kind))[: len(flat)]
        parts = torch.split(whole, [value.numel() for value in values])
        return [part.view_as(value).clone() for part, value in zip(parts, values, strict=True)]

    def tensors(self) -> dict[str, Tensor]:
        """What a checkpoint has to hold; the weights are in it anyway."""
        return {str(place): speed for place, speed in enumerate(self.speed)}

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Take back what `tensors` gave, when the weights are those of a meeting."""
        for place, speed in enumerate(self.speed):
            speed.copy_(tensors[str(place)])
        for start, weight in zip(self.start, self.weights, strict=True):
            start.copy_(weight.detach())

    def joined(self, checkpoint: Checkpoint) -> Checkpoint:
        """With the optimisers of every process, each of which remembers its own."""
        tensors = dict(checkpoint.tensors)
        own = {name: each for name, each in tensors.items() if name.startswith("optimizer.")}
        for rank in range(1, self.world.size):
            told = self.world.tell_tensors(own if rank == self.world.rank else None, rank)
            tensors |= {f"of.{rank}.{name}": each for name, each in told.items()}
        numbers = loads(checkpoint.numbers) | {"processes": self.world.size}
        return dataclasses.replace(checkpoint, tensors=tensors, numbers=json.dumps(numbers, allow_nan=False))

    def own(self, checkpoint: Checkpoint) -> Checkpoint:
        """With the optimisers of this process alone."""
        were = loads(checkpoint.numbers)["processes"]
        if were != self.world.size:
            raise UsageError(
                f"this run trains in rounds of {were} processes (train.outer_every), each with a memory of "
                f"its own; {self.world.size} cannot go on with it"
            )
        tensors = {name: each for name, each in checkpoint.tensors.items() if not name.startswith("of.")}
        return dataclasses.replace(checkpoint, tensors=tensors | checkpoint.part(f"of.{self.world.rank}"))
