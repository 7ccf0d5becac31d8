"""Batches of pairs. Where no validation files are given, a small part of the pairs is held out here."""

from functools import partial

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


def hold_out(store: Store) -> tuple[Rows, Rows]:
    """Rows to train on, and rows to validate on, chosen by a hash of the source."""
    sources = (store.src.sentence(i).tobytes() for i in range(len(store)))
    return held_out(sources, HELD_OUT, HELD_OUT_SHARE)
