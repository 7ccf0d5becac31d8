"""What the loop eats: batch number `position` of `epoch`, a pure function of the two.

A feed is some rows of a store, a sampler over their lengths, and what makes a batch of the rows it picks.
"""

from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from regard.config import TrainConfig
from regard.data.sampler import Batches, Sampler

Rows = npt.NDArray[np.int64]
B = TypeVar("B")


class StoreFeed(Generic[B]):
    """Batches of some rows, in the order of the sampler."""

    def __init__(
        self,
        rows: Rows,
        lengths: Sequence[npt.NDArray[np.integer]],
        train: TrainConfig,
        collate: Callable[[Rows], B],
    ) -> None:
        """`lengths`: how long each row is, on each side it has, (N,) each; they bound a batch together."""
        few = len(rows) > 0 and rows.max() < 2**31
        self.rows: npt.NDArray[np.integer] = rows.astype(np.int32) if few else rows  # half the memory
        self.collate = collate
        self.sampler = Sampler(*lengths, batch_tokens=train.batch_tokens, seed=train.seed)
        self._epoch, self._batches = 0, self.sampler.batches(0)

    def _of(self, epoch: int) -> Batches:
        """The batches of an epoch; the last one asked for is remembered."""
        if epoch != self._epoch:
            del self._batches  # before there is another
            self._epoch, self._batches = epoch, self.sampler.batches(epoch)
        return self._batches

    def count(self, epoch: int) -> int:
        """How many batches `epoch` has."""
        return len(self._of(epoch))

    def batch(self, epoch: int, position: int) -> B:
        """One batch."""
        return self.collate(self.rows[self._of(epoch)[position]].astype(np.int64))

    def shapes(self, epoch: int = 0) -> tuple[Rows, ...]:
        """Rows, and the longest length on each side, of each batch of an epoch; the order means nothing."""
        return self.sampler.shapes(epoch)


def spread(rows: Rows, count: int) -> Rows:
    """At most `count` of the rows, evenly spread over them."""
    return rows[spread_over(len(rows), count)]


def spread_over(total: int, count: int) -> Rows:
    """At most `count` of the numbers below `total`, evenly spread over them."""
    if total <= count:
        return np.arange(total)
    return np.linspace(0, total - 1, count).round().astype(np.int64)
