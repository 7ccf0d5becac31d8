"""Tokens of documents on disk, cut into rows: every one once an epoch, in an order that is no secret."""

from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.data.rows import IDS, RowFeed, cut_rows, gather, open_tokens
from regard.data.texts import Texts, hold_out
from regard.text.running import RunningText


@pytest.fixture
def texts(tmp_path) -> Texts:
    for number, text in enumerate(["to be,\n\tor not", "€uro ÷ 2\r\n" * 7, "x"]):
        (tmp_path / f"{number}.txt").write_bytes(text.encode())
    return Texts((tmp_path,))


@pytest.mark.parametrize("units", ["bytes", "characters", "subwords"])
def test_packed_and_unpacked_gives_the_text_back(texts, tmp_path_factory, units):
    tokenizer = RunningText.learn(["to be or not to be €uro"], units)
    held = open_tokens(texts.documents, tokenizer, tmp_path_factory.mktemp("store") / "train")
    ids = held[IDS].values
    feed = RowFeed(len(ids), 7, lambda spans: spans, batch_tokens=23, seed=3)
    for epoch in range(3):
        spans = np.concatenate([feed.batch(epoch, at) for at in range(feed.count(epoch))])
        rows = [gather(ids, span[None], fill=0)[0][0].tolist() for span in spans[np.argsort(spans[:, 0])]]
        documents, back = (
            [each.path.read_bytes() for each in texts.documents],
            list(chain.from_iterable(rows)),
        )
        ends = [place for place, number in enumerate(back) if number == tokenizer.end_id]
        begins = [0, *(end + 1 for end in ends)]
        assert [tokenizer.spell(back[a:b]) for a, b in zip(begins, ends, strict=False)] == documents
        assert begins[-1] == len(back)
    assert held.report == {"documents": 3, "tokens": len(ids), "bytes": sum(map(len, documents))}


def test_store_is_reused(texts, tmp_path_factory):
    folder, tokenizer = tmp_path_factory.mktemp("store") / "train", RunningText.learn([], "bytes")
    open_tokens(texts.documents, tokenizer, folder)
    before = (folder / "ids.bin").stat().st_mtime_ns
    open_tokens(texts.documents, tokenizer, folder)
    assert (folder / "ids.bin").stat().st_mtime_ns == before
    open_tokens(hold_out(texts.documents)[0][:1], tokenizer, folder)
    assert (folder / "ids.bin").stat().st_mtime_ns != before


@settings(max_examples=60, deadline=None)
@given(
    total=st.integers(1, 500),
    length=st.integers(1, 60),
    batch=st.integers(1, 200),
    seed=st.integers(0, 9),
    epoch=st.integers(0, 9),
)
def test_every_token_once_an_epoch(total, length, batch, seed, epoch):
    feed = RowFeed(total, length, lambda spans: spans, batch_tokens=batch, seed=seed)
    batches = [feed.batch(epoch, position) for position in range(feed.count(epoch))]
    places = np.concatenate([np.arange(*span) for spans in batches for span in spans])
    assert sorted(places.tolist()) == list(range(total))
    lengths = [int(np.ptp(span)) for spans in batches for span in spans]
    assert max(lengths) <= length
    assert all(len(spans) * length <= max(batch, length) for spans in batches)
    again = RowFeed(total, length, lambda spans: spans, batch_tokens=batch, seed=seed)
    assert np.array_equal(again.batch(epoch, len(batches) - 1), batches[-1])


def test_epochs_differ():
    feed = RowFeed(1000, 10, lambda spans: spans, batch_tokens=50, seed=1)
    assert not np.array_equal(feed.batch(0, 0), feed.batch(1, 0))
    assert len({int(feed.spans(epoch)[:, 0].min() + feed.spans(epoch)[:, 1].min()) for epoch in range(9)}) > 1


def test_gather_fills_short_rows():
    rows, real = gather(np.arange(10, 20, dtype="<u2"), cut_rows(10, 4), fill=0)
    assert rows.tolist() == [[10, 11, 12, 13], [14, 15, 16, 17], [18, 19, 0, 0]]
    assert real.sum(1).tolist() == [4, 4, 2]
