"""The order of training: batches by tokens, bucketed by length, a pure function of (seed, epoch).

All pairs are shuffled and dealt into pools; a pool is sorted by length and cut into batches; the
batches are shuffled. Sorting only pools keeps neighbours random, yet leaves little padding. Lengths
come from `store.py`; each batch of indices goes to `batch.py`. Vaswani et al. 2017, section 5.1.
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import overload

import numpy as np
import numpy.typing as npt

from regard.errors import UsageError

Ints = npt.NDArray[np.integer]

# Batches cut from one pool: more leave less padding, fewer mix the neighbours better.
_POOL_BATCHES = 256
_RANGES = 16  # of the bits that an order is sorted by, one after the other; it changes no order
_PART = 2**20  # examples that are looked at at a time


class Batches(Sequence[npt.NDArray[np.int32]]):
    """The batches of one epoch: one flat array of pair indices and where it is cut."""

    def __init__(self, flat: npt.NDArray[np.int32], cuts: npt.NDArray[np.int64], order: Ints) -> None:
        self.flat, self.cuts, self.order = flat, cuts, order

    def __len__(self) -> int:
        return len(self.order)

    @overload
    def __getitem__(self, position: int) -> npt.NDArray[np.int32]: ...
    @overload
    def __getitem__(self, position: slice) -> "Batches": ...
    def __getitem__(self, position: int | slice) -> "npt.NDArray[np.int32] | Batches":
        if isinstance(position, slice):
            return Batches(self.flat, self.cuts, self.order[position])
        batch = self.order[position]
        return self.flat[self.cuts[batch] : self.cuts[batch + 1]]


class Sampler:
    """Batches of pair indices for any epoch.

    `lengths` (N,) count what the model is fed, end mark included, one array for each side that an example
    has. In a batch, rows times the longest length of any side is at most `batch_tokens`; an example that is
    longer by itself is a batch by itself.
    """

    def __init__(
        self,
        *lengths: Ints,
        batch_tokens: int,
        seed: int,
    ) -> None:
        counts = [len(each) for each in lengths]
        if len(set(counts)) > 1:
            raise UsageError(f"{' and '.join(map(str, counts))} lengths of the sides of the same examples")
        if not counts or counts[0] == 0:
            raise UsageError("no examples to make batches of")
        self.lengths = [_small(each) for each in lengths]
        self.count, self.batch_tokens, self.seed = counts[0], batch_tokens, seed
        parts = (slice(start, start + _PART) for start in range(0, self.count, _PART))
        self.mean = sum(int(self._longest(part).sum(dtype=np.int64)) for part in parts) / self.count

    def batches(self, epoch: int) -> Batches:
        """The batches of `epoch`, in order; together they hold each pair once."""
        return Batches(*self._plan(epoch))

    def padding(self, epoch: int) -> float:
        """The share of padding among all tokens of an epoch, both sides together."""
        flat, cuts, _ = self._plan(epoch)
        rows = np.diff(cuts)
        real = padded = 0
        for lengths in (each[flat] for each in self.lengths):
            real += int(lengths.sum(dtype=np.int64))
            padded += int((np.maximum.reduceat(lengths, cuts[:-1]) * rows).sum(dtype=np.int64))
        return 1 - real / padded

    def shapes(self, epoch: int) -> tuple[npt.NDArray[np.int64], ...]:
        """Rows (M,) and the longest length on each side (M,) of the batches of an epoch."""
        flat, cuts, _ = self._plan(epoch)
        longest = (np.maximum.reduceat(lengths[flat], cuts[:-1]).astype(np.int64) for lengths in self.lengths)
        return np.diff(cuts), *longest

    def _plan(self, epoch: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64], Ints]:
        """All pairs in batch order (N,), the cuts between batches (M + 1,), a batch order (M,)."""
        random = np.random.Philox(np.random.SeedSequence([self.seed, epoch]))
        flat = _shuffled(self.count, random)
        starts: list[int] = []
        pools = round(len(flat) * self.mean / (_POOL_BATCHES * self.batch_tokens))
        edges = np.linspace(0, len(flat), max(1, pools) + 1).astype(np.int64)
        for low, high in pairwise(edges):
            pool = flat[low:high]
            pool[:] = pool[self._by_length(pool)]
            starts += [int(low) + start for start in _cut(self._longest(pool), self.batch_tokens)]
        cuts = np.array([*starts, len(flat)], dtype=np.int64)
        return flat, cuts, _shuffled(len(cuts) - 1, random)

    def _longest(self, some: Ints | slice) -> Ints:
        """The longest side of some examples."""
        longest: Ints = np.maximum.reduce([each[some] for each in self.lengths])
        return longest

    def _by_length(self, pool: Ints) -> Ints:
        """The order that sorts a pool; equal lengths stay in their shuffled order.

        By the length of the last side (the target), then by the first (the source) rising and falling in
        turn, so that neighbours stay close where the target length changes.
        """
        src, tgt = (self.lengths[side][pool].astype(np.int32) for side in (0, -1))
        return np.lexsort((np.where(tgt % 2 == 0, src, -src), tgt))


def _small(lengths: Ints) -> Ints:
    """The lengths in two bytes each, where none is too long for that."""
    return np.asarray(lengths, dtype=np.uint16 if lengths.max() <= np.iinfo(np.uint16).max else np.int32)


def _shuffled(count: int, random: np.random.Philox) -> npt.NDArray[np.int32]:
    """0 .. count - 1 in the order of raw bits, whose stream numpy promises never to change.

    Sorted a range of bits at a time, which takes half the memory of sorting all at once and gives the same.
    """
    drawn = random.random_raw(count)
    order, done = np.empty(count, dtype=np.int32), 0
    width = 2**64 // _RANGES
    for low in range(0, 2**64, width):
        within = drawn >= np.uint64(low)
        within &= drawn <= np.uint64(low + width - 1)
        some = np.flatnonzero(within)
        order[done : done + len(some)] = some[np.argsort(drawn[some], kind="stable")]
        done += len(some)
    return order


def _cut(longest: Ints, batch_tokens: int) -> list[int]:
    """Where batches start, taking rows while rows * longest fits."""
    starts, start = [], 0
    while start < len(longest):
        starts.append(start)
        most = max(1, batch_tokens // int(longest[start]))
        widths = np.maximum.accumulate(longest[start : start + most]).astype(np.int64)
        tokens = widths * np.arange(1, len(widths) + 1)
        start += max(1, int(np.searchsorted(tokens, batch_tokens, side="right")))
    return starts
