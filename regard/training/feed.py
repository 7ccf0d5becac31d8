"""What the loop eats: batch number `position` of `epoch`, a pure function of the two.

A feed is a store, the rows of it that are trained on, and a sampler over their lengths. Where no
validation files are given, a small part of the pairs is held out here, chosen by their content.
"""

import zlib

import numpy as np
import numpy.typing as npt

from regard.config import TrainConfig
from regard.data.batch import Batch, collate
from regard.data.sampler import Batches, Sampler
from regard.data.store import Store
from regard.text.tokenizer import OUR_SPECIALS, Specials

Rows = npt.NDArray[np.int64]

HELD_OUT = 1000  # pairs at most
HELD_OUT_SHARE = 50  # one in so many at most


class Feed:
    """Batches of some rows of a store, in the order of the sampler."""

    def __init__(
        self,
        store: Store,
        rows: Rows,
        train: TrainConfig,
        *,
        specials: Specials = OUR_SPECIALS,
        rank: int = 0,
        world: int = 1,
    ) -> None:
        self.store, self.rows, self.specials = store, rows, specials
        self.sampler = Sampler(
            store.src_lengths[rows],
            store.tgt_lengths[rows],
            batch_tokens=train.batch_tokens,
            seed=train.seed,
            rank=rank,
            world=world,
        )
        self._epoch, self._batches = 0, self.sampler.batches(0)

    def _of(self, epoch: int) -> Batches:
        """The batches of an epoch; the last one asked for is remembered."""
        if epoch != self._epoch:
            self._epoch, self._batches = epoch, self.sampler.batches(epoch)
        return self._batches

    def count(self, epoch: int) -> int:
        """How many batches `epoch` has."""
        return len(self._of(epoch))

    def shapes(self, epoch: int = 0) -> tuple[Rows, ...]:
        """Rows, longest source and longest target of each batch of an epoch; the order means nothing."""
        return self.sampler.shapes(epoch)

    def batch(self, epoch: int, position: int) -> Batch:
        """One batch."""
        rows = self.rows[self._of(epoch)[position]]
        pad, begin, end, _ = self.specials
        return collate(self.store, rows, pad_id=pad, begin_id=begin, end_id=end)


def hold_out(store: Store) -> tuple[Rows, Rows]:
    """Rows to train on, and rows to validate on.

    The choice follows a hash of the source, so that every copy of a held-out sentence leaves training
    and the same sentence is held out wherever it stands. Too few sentences to spare: none is.
    """
    hashes = np.fromiter(
        (zlib.crc32(store.src.sentence(i).tobytes()) for i in range(len(store))), np.uint32, len(store)
    )
    distinct, first = np.unique(hashes, return_index=True)
    count = min(HELD_OUT, len(distinct) // HELD_OUT_SHARE)
    held = np.isin(hashes, distinct[:count])
    return np.flatnonzero(~held), np.sort(first[:count]).astype(np.int64)


def spread(rows: Rows, count: int) -> Rows:
    """At most `count` of the rows, evenly spread over them."""
    if len(rows) <= count:
        return rows
    return rows[np.linspace(0, len(rows) - 1, count).round().astype(np.int64)]
