"""Batches of pairs. Where no validation files are given, a small part of the pairs is held out here."""

from functools import partial

import numpy as np

from regard.config import TrainConfig
from regard.data.batch import Batch, collate
from regard.data.columns import held_out
from regard.data.store import Store
from regard.text.tokenizer import OUR_SPECIALS, Specials
from regard.training.feed import Rows, StoreFeed

HELD_OUT = 1000  # pairs at most
HELD_OUT_SHARE = 50  # one in so many at most


class PairFeed(StoreFeed[Batch]):
    """Batches of some pairs of a store."""

    def __init__(
        self,
        store: Store,
        rows: Rows,
        train: TrainConfig,
        *,
        specials: Specials = OUR_SPECIALS,
    ) -> None:
        pad, begin, end, _ = specials
        lengths = store.src_lengths[rows], store.tgt_lengths[rows]
        make = partial(collate, store, pad_id=pad, begin_id=begin, end_id=end)
        super().__init__(rows, lengths, train, make)


def hold_out(store: Store, rows: Rows | None = None, tags: frozenset[int] = frozenset()) -> tuple[Rows, Rows]:
    """Of some rows those to train on, and those to validate on, chosen by a hash of the source.

    `tags` may stand before a source and do not count, so that a sentence is held out of every group.
    """
    rows = np.arange(len(store)) if rows is None else rows
    sources = (store.src.sentence(i) for i in rows)
    bare = (ids[1:] if tags and int(ids[0]) in tags else ids for ids in sources)
    kept, held = held_out((ids.tobytes() for ids in bare), HELD_OUT, HELD_OUT_SHARE)
    return rows[kept], rows[held]
