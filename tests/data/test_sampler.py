"""The order of training: the laws that resuming and several processes rest on."""

import tracemalloc
from collections import Counter
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.config import DataConfig, TrainConfig
from regard.data.corpus import Corpus
from regard.data.sampler import Sampler, _cut, _shuffled
from regard.data.store import Store, open_store
from regard.errors import UsageError
from regard.text.tokenizer import Tokenizer
from regard.training.feed import StoreFeed

Lengths = npt.NDArray[np.int32]
lengths = st.lists(st.tuples(st.integers(2, 40), st.integers(2, 40)), min_size=1, max_size=300).map(
    lambda both: np.array(both, dtype=np.int32).T
)
budgets = st.integers(1, 400)
seeds = st.integers(0, 10**12)
epochs = st.integers(0, 10**6)


def as_lists(sampler: Sampler, epoch: int) -> list[list[int]]:
    return [batch.tolist() for batch in sampler.batches(epoch)]


@given(lengths, budgets, seeds, epochs)
def test_every_pair_once_an_epoch(both: Lengths, budget: int, seed: int, epoch: int) -> None:
    batches = as_lists(Sampler(*both, batch_tokens=budget, seed=seed), epoch)
    assert sorted(index for batch in batches for index in batch) == list(range(both.shape[1]))


@given(lengths, budgets, seeds, epochs)
def test_tokens_are_bounded(both: Lengths, budget: int, seed: int, epoch: int) -> None:
    for batch in Sampler(*both, batch_tokens=budget, seed=seed).batches(epoch):
        assert len(batch) == 1 or both[:, batch].max() * len(batch) <= budget


@given(lengths, budgets, seeds, epochs)
def test_a_pure_function_of_seed_and_epoch(both: Lengths, budget: int, seed: int, epoch: int) -> None:
    sampler = Sampler(*both, batch_tokens=budget, seed=seed)
    sampler.batches(epoch + 1)  # what was asked before changes nothing
    again = Sampler(*both, batch_tokens=budget, seed=seed)
    assert as_lists(sampler, epoch) == as_lists(again, epoch)


@given(lengths, budgets)
def test_padding_is_what_a_loop_counts(both: Lengths, budget: int) -> None:
    sampler = Sampler(*both, batch_tokens=budget, seed=7)
    real = padded = 0
    for batch in sampler.batches(2):
        for side in both:
            real += int(side[batch].sum())
            padded += int(side[batch].max()) * len(batch)
    assert sampler.padding(2) == pytest.approx(1 - real / padded)


@given(st.lists(st.integers(1, 50), min_size=1), budgets)
def test_cut_is_greedy(longest: list[int], budget: int) -> None:
    starts, rows, widest = [0], 0, 0
    for place, length in enumerate(longest):
        if rows and max(widest, length) * (rows + 1) > budget:
            starts.append(place)
            rows, widest = 0, 0
        rows, widest = rows + 1, max(widest, length)
    assert _cut(np.array(longest, dtype=np.int32), budget) == starts


def test_batches_are_a_sequence() -> None:
    both = np.arange(2, 103)
    batches = Sampler(both, both, batch_tokens=200, seed=1).batches(0)
    listed = [batch.tolist() for batch in batches]
    assert batches[-1].tolist() == listed[-1]
    assert [batch.tolist() for batch in batches[5:9]] == listed[5:9]
    with pytest.raises(IndexError):
        batches[len(batches)]


def test_epochs_and_seeds_differ() -> None:
    both = np.full(97, 7)
    orders = {
        tuple(
            index
            for batch in as_lists(Sampler(both, both, batch_tokens=35, seed=seed), epoch)
            for index in batch
        )
        for seed in range(3)
        for epoch in range(3)
    }
    assert len(orders) == 9


def test_long_and_short_batches_are_mixed() -> None:
    both = np.random.default_rng(1).integers(2, 60, 5000)
    widths = [int(both[batch].max()) for batch in Sampler(both, both, batch_tokens=600, seed=1).batches(0)]
    place_and_width = np.corrcoef(np.arange(len(widths)), widths)[0, 1]
    assert abs(place_and_width) < 0.2


def test_lengths_must_match_and_exist() -> None:
    with pytest.raises(UsageError, match="2 and 1 lengths"):
        Sampler(np.array([3, 4]), np.array([3]), batch_tokens=9, seed=1)
    with pytest.raises(UsageError, match="no examples"):
        Sampler(np.array([], dtype=np.int32), np.array([], dtype=np.int32), batch_tokens=9, seed=1)


def test_what_a_pair_costs_in_memory() -> None:
    pairs = 300_000
    src, tgt = np.random.default_rng(1).integers(2, 60, (2, pairs), dtype=np.int32)
    tracemalloc.start()
    feed = StoreFeed(np.arange(pairs), [src, tgt], TrainConfig(batch_tokens=4096), tuple)
    tracemalloc.reset_peak()
    assert feed.count(1) > 1500
    held, peak = (each / pairs for each in tracemalloc.get_traced_memory())
    tracemalloc.stop()
    assert held < 12.5  # lengths 2 + 2, the order 4, which rows 4; and the cuts
    assert peak < 24


@given(st.integers(1, 400), seeds)
def test_an_order_is_that_of_all_bits_at_once(count: int, seed: int) -> None:
    found = _shuffled(count, np.random.Philox(seed))
    raw = np.random.Philox(seed).random_raw(count)
    assert found.tolist() == np.argsort(raw, kind="stable").tolist()


@given(lengths, budgets, seeds)
def test_lengths_of_two_bytes_and_of_four_give_the_same(both: Lengths, budget: int, seed: int) -> None:
    small, large = (Sampler(*both, batch_tokens=budget, seed=seed) for _ in range(2))
    large.lengths = list(both)
    assert [each.itemsize for each in (*small.lengths, *large.lengths)] == [2, 2, 4, 4]
    assert as_lists(small, 5) == as_lists(large, 5)
    assert [each.tolist() for each in small.shapes(5)] == [each.tolist() for each in large.shapes(5)]


def test_a_length_beyond_two_bytes_is_kept() -> None:
    sampler = Sampler(np.array([3, 70_000]), batch_tokens=9, seed=1)
    assert sampler.lengths[0].tolist() == [3, 70_000]


@pytest.fixture(scope="module")
def multi30k(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Store:
    corpus = Corpus.of([shared_data / "multi30k" / f"train.{language}.gz" for language in ("en", "de")])
    tokenizer = Tokenizer.train(corpus.lines(), 8000)
    return open_store(corpus, tokenizer, DataConfig(), tmp_path_factory.mktemp("multi30k") / "store")


def test_little_padding_on_real_sentences(multi30k: Store) -> None:
    sampler = Sampler(multi30k.src_lengths, multi30k.tgt_lengths, batch_tokens=2048, seed=1)
    assert sampler.padding(0) < 0.05


def test_neighbours_change_from_epoch_to_epoch(multi30k: Store) -> None:
    sampler = Sampler(multi30k.src_lengths, multi30k.tgt_lengths, batch_tokens=2048, seed=1)
    batch_of = np.empty((2, len(multi30k)), dtype=np.int64)
    for epoch in (0, 1):
        for number, batch in enumerate(sampler.batches(epoch)):
            batch_of[epoch, batch] = number
    together = sum(count * (count - 1) for count in Counter(batch_of[0].tolist()).values())
    again = sum(count * (count - 1) for count in Counter(zip(*batch_of.tolist(), strict=True)).values())
    assert again < 0.6 * together
