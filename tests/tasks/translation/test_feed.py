from pathlib import Path
from typing import Any

import numpy as np
import torch

from regard.config import Config, TrainConfig
from regard.data.corpus import Corpus
from regard.data.store import open_store
from regard.tasks.translation.feed import HELD_OUT_SHARE, PairFeed, hold_out
from regard.training.feed import spread


def test_batches_hold_the_rows_and_no_others(toy: Any) -> None:
    rows = np.arange(3, 20)
    feed = PairFeed(toy.store, rows, TrainConfig(batch_tokens=31))
    tokens = sum(feed.batch(2, position).targets for position in range(feed.count(2)))
    assert tokens == int(toy.store.tgt_lengths[rows].sum())


def test_a_batch_is_a_pure_function_of_epoch_and_position(toy: Any) -> None:
    feeds = [PairFeed(toy.store, np.arange(30), TrainConfig(batch_tokens=31)) for _ in range(2)]
    feeds[0].batch(5, 1)
    assert torch.equal(feeds[0].batch(1, 2).inputs.ids, feeds[1].batch(1, 2).inputs.ids)


def test_what_is_held_out_is_never_trained_on(tmp_path: Path, toy: Any) -> None:
    lines = [f"one {'two ' * (i % 7)}{i % 211}" for i in range(1000)]
    (tmp_path / "a").write_text("\n".join(lines) + "\n")
    (tmp_path / "b").write_text("\n".join(reversed(lines)) + "\n")
    store = open_store(
        Corpus.of([tmp_path / "a", tmp_path / "b"]), toy.tokenizer, Config().data, tmp_path / "s"
    )
    train, held = hold_out(store)
    sentences = [store.pair(i)[0].tobytes() for i in range(len(store))]
    assert not {sentences[i] for i in train} & {sentences[i] for i in held}
    assert len(held) == len(set(sentences)) // HELD_OUT_SHARE
    assert len({sentences[i] for i in held}) == len(held)
    assert {sentences[i] for i in train} | {sentences[i] for i in held} == set(sentences)


def test_too_few_sentences_to_spare_any(toy: Any) -> None:
    train, held = hold_out(toy.store)
    assert len(train) == len(toy.store)
    assert len(held) == 0


def test_spread_is_even_and_keeps_both_ends() -> None:
    assert spread(np.arange(10, 110), 4).tolist() == [10, 43, 76, 109]
    assert spread(np.arange(3), 4).tolist() == [0, 1, 2]
