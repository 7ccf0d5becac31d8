"""What training asks of a task: batches, losses, and a measurement. It knows nothing else of what is learned.

    for loss in objective.losses(model, batch):     # a sum over the batch's targets
        (loss.total / targets).backward()           # then the weights of its group are moved

An objective is asked for its losses one by one, and the weights of a loss's group are moved before the next
is computed. So a model of two parts that learn against each other (a GAN) is an objective with two groups,
and everything else one with a single loss. Used by `loop.py`; given by a task (`regard.tasks.task`).
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self, TypeVar

import torch
from torch import Tensor, nn

from regard.config import TrainConfig
from regard.measure.score import Score
from regard.training.world import here

T = TypeVar("T")
R = TypeVar("R")
ALL = "all"  # the group of an objective that has one


class Batch(Protocol):
    """Some examples, as a model is fed them and asked for them."""

    @property
    def targets(self) -> int:
        """What its losses are sums over: tokens, rows, boxes."""
        ...

    def to(self, device: torch.device | str) -> Self:
        """The same on a device."""
        ...


class Feed(Protocol):
    """Batch number `position` of `epoch`, a pure function of the two: nothing has to be remembered."""

    def count(self, epoch: int) -> int:
        """How many batches `epoch` has."""
        ...

    def batch(self, epoch: int, position: int) -> Any:
        """One batch."""
        ...


@dataclass(frozen=True)
class Loss:
    """A loss summed over the targets of a batch, and the group of weights that it moves."""

    total: Tensor
    group: str = ALL


@dataclass(frozen=True)
class Group:
    """Weights that are moved together, at `lr` times the rate of the schedule, each at its share of that."""

    weights: Sequence[nn.Parameter]
    lr: float = 1.0
    shares: Sequence[float] = ()  # one for each weight; none: the whole rate for all
    betas: tuple[float, float] = (0.9, 0.98)  # how long Adam remembers gradients, and their squares


class Objective:
    """Base of all objectives: one group, which is every weight that learns."""

    sums_over = "tokens"  # what the targets of a batch are, for people
    fills_with = "token"  # and what a batch is full of (`train.batch_tokens`)

    def groups(self, model: nn.Module) -> Mapping[str, Group]:
        """The weights by group; together all that learn, none twice."""
        return {ALL: Group([weight for weight in model.parameters() if weight.requires_grad])}

    def losses(self, model: Any, batch: Any) -> Iterator[Loss]:
        """The losses of a batch, each computed when it is asked for."""
        raise NotImplementedError


@dataclass(frozen=True)
class Limit:
    """When a measurement must be done, by a clock; none by default."""

    until: float = math.inf
    clock: Callable[[], float] = time.monotonic

    def left(self) -> float:
        """Seconds until then."""
        return self.until - self.clock()

    def part(self, share: float) -> "Limit":
        """The first share of the time until then."""
        now = self.clock()
        return replace(self, until=now + share * (self.until - now))


@dataclass(frozen=True)
class Measurement:
    """What an evaluator found. The first score decides which weights are the best."""

    scores: Mapping[str, Score]
    complete: bool = True  # measured on everything that it was to be measured on
    seconds: float = 0.0  # what a complete one takes, judged by this one

    @property
    def judge(self) -> Score:
        """The score that decides."""
        return next(iter(self.scores.values()))


def shared(work: Callable[[T], R], items: Sequence[T], limit: Limit) -> Iterator[R]:
    """What `work` makes of each item, in order, until the limit has passed; of the first one always.

    Processes that train together (`world.py`) share the items out, and each is given what all of them made:
    something that JSON can say. The clock of the first decides.
    """
    world = here()
    bound = limit.until < math.inf
    stride = world.size if bound or world.size == 1 else max(1, len(items))
    for start in range(0, len(items), stride):
        if start and bound and world.tell(limit.left() <= 0):
            return
        yield from world.done(work, items[start : start + stride])


class Evaluator(Protocol):
    """Measures a model on what it has not seen.

    One whose class says `shares = True` is asked in every process, takes its work from `shared`, and draws at
    random for each item anew; any other is asked in process 0 alone.
    """

    def measure(
        self,
        model: nn.Module,
        device: torch.device,
        train: TrainConfig,
        *,
        limit: Limit | None = None,
        last: bool = False,
    ) -> Measurement:
        """Named scores, by the limit if there is one; `last`: of the weights that are kept, so thorough.

        Nothing that training would miss may change: `undisturbed` sees to it.
        """
        ...


@contextmanager
def undisturbed(model: nn.Module) -> Iterator[None]:
    """No dropout, no gradients; model and random state are afterwards as they were."""
    training, state = model.training, torch.get_rng_state()
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(training)
        torch.set_rng_state(state)
