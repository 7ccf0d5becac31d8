"""The token store: what went in comes out, it is reused only when whole, and nothing is ever lost."""

import errno
import os
import resource
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.config import DataConfig
from regard.data import columns
from regard.data import store as store_module
from regard.data.corpus import Corpus
from regard.data.store import Store, open_store
from regard.errors import DataError, StorageError, UsageError

RULES = DataConfig(max_length=31, max_ratio=3.0)
PAIRS = [("one", "eins"), ("", "leer"), ("three", "drei"), ("x" * 40, "y" * 40), ("a", "lang"), ("sü", "nd")]
KEPT = [("one", "eins"), ("three", "drei"), ("sü", "nd")]
Write = Callable[..., Corpus]


def text(ids: Any) -> str:
    return bytes(int(number) - 4 for number in ids).decode()


def contents(store: Store) -> list[tuple[str, str]]:
    return [(text(src), text(tgt)) for src, tgt in map(store.pair, range(len(store)))]


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_kept_pairs_come_back(write_pairs: Write, encoder: Any, tmp_path: Path) -> None:
    store = open_store(write_pairs(PAIRS), encoder, RULES, tmp_path / "new" / "store")
    assert contents(store) == KEPT
    assert store.src_lengths.tolist() == [4, 6, 4]  # with the end mark; ü is two bytes
    assert store.tgt_lengths.tolist() == [5, 5, 3]
    assert store.src_lengths.dtype == store.tgt_lengths.dtype == np.int32
    assert len(store) == 3


def test_report_counts_everything(write_pairs: Write, encoder: Any, tmp_path: Path) -> None:
    report = open_store(write_pairs(PAIRS), encoder, RULES, tmp_path / "store").report
    assert (report.pairs, report.kept, report.src_tokens, report.tgt_tokens) == (6, 3, 11, 10)
    assert report.left_out == {"empty": 1, "over-long": 1, "ratio": 1}
    assert report.summary().startswith("3 of 6 pairs (1 empty, 1 over-long, 1 ratio)")


def test_pairs_of_several_files_are_counted_by_file_and_lie_in_shards(
    write_pairs: Write, encoder: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = open_store(write_pairs(PAIRS), encoder, RULES, tmp_path / "one")
    assert one.report.parts == []
    (tmp_path / "more").mkdir()
    for name, pairs in (("a", PAIRS), ("b", PAIRS[2:3]), ("c", PAIRS[1:2])):
        text = "".join(f"{src}\t{tgt}\n" for src, tgt in pairs)
        (tmp_path / "more" / f"{name}.tsv").write_text(text, encoding="utf-8")
    corpus = Corpus.of(sorted((tmp_path / "more").iterdir()))
    whole = open_store(corpus, encoder, RULES, tmp_path / "whole")
    assert whole.report.parts == [3, 1, 0]
    monkeypatch.setattr(store_module, "SHARD", 1)
    monkeypatch.setattr("regard.data.filter._CHUNK_PAIRS", 2)
    shards = open_store(corpus, encoder, RULES, tmp_path / "shards")
    assert contents(shards) == contents(whole)
    rows = np.array([3, 0, 2, 1])
    for side in ("src", "tgt"):
        ours, theirs = (getattr(each, side).padded(rows, end_id=2, pad_id=0) for each in (shards, whole))
        assert np.array_equal(ours, theirs)


@pytest.mark.parametrize(("vocab_size", "width"), [(260, 2), (1 << 16, 2), ((1 << 16) + 1, 4)])
def test_ids_are_as_wide_as_the_vocabulary_needs(
    write_pairs: Write, new_encoder: Any, tmp_path: Path, vocab_size: int, width: int
) -> None:
    store = open_store(write_pairs(PAIRS), new_encoder(vocab_size=vocab_size), RULES, tmp_path / "store")
    assert store.src.ids.itemsize == width
    assert contents(store) == KEPT


def test_the_largest_ids_survive(write_pairs: Write, new_encoder: Any, tmp_path: Path) -> None:
    for vocab_size in (1 << 16, 1 << 20):
        encoder = new_encoder(name=str(vocab_size), vocab_size=vocab_size)
        encoder.encode_batch = encoder.encode_targets = lambda texts, top=vocab_size - 1: [
            [top] for _ in texts
        ]
        store = open_store(write_pairs([("a", "b")]), encoder, RULES, tmp_path / "store")
        assert store.pair(0)[0].tolist() == [vocab_size - 1]


def test_a_target_vocabulary_may_be_the_larger_one(
    write_pairs: Write, new_encoder: Any, tmp_path: Path
) -> None:
    encoder = new_encoder(vocab_size=300, target_vocab_size=1 << 17)
    encoder.encode_targets = lambda texts: [[(1 << 17) - 1] for _ in texts]
    store = open_store(write_pairs([("a", "b")]), encoder, RULES, tmp_path / "store")
    assert store.pair(0)[1].tolist() == [(1 << 17) - 1]


def test_several_chunks(
    write_pairs: Write, encoder: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("regard.data.filter._CHUNK_PAIRS", 7)
    pairs = [(f"source {n}", f"target {n * n}") for n in range(50)]
    assert contents(open_store(write_pairs(pairs), encoder, RULES, tmp_path / "store")) == pairs


def test_reused_while_nothing_changes(write_pairs: Write, new_encoder: Any, tmp_path: Path) -> None:
    corpus = write_pairs(PAIRS)
    first = open_store(corpus, new_encoder(), RULES, tmp_path / "store")
    again = new_encoder()
    second = open_store(corpus, again, RULES, tmp_path / "store")
    assert again.texts == 0
    assert contents(second) == KEPT
    assert second.report == first.report


def test_rebuilt_when_an_input_changes(write_pairs: Write, new_encoder: Any, tmp_path: Path) -> None:
    folder = tmp_path / "store"
    open_store(write_pairs(PAIRS), new_encoder(), RULES, folder)
    for pairs, name, rules in [
        ([*PAIRS, ("new", "neu")], "bytes", RULES),
        (PAIRS, "bytes", RULES),
        (PAIRS, "other", RULES),
        (PAIRS, "other", DataConfig(max_length=99, max_ratio=3.0)),
    ]:
        encoder = new_encoder(name)
        store = open_store(write_pairs(pairs), encoder, rules, folder)
        assert encoder.texts > 0
        assert store.report.pairs == len(pairs)


@pytest.mark.parametrize("name", ["src.bin", "src.offsets", "tgt.bin", "tgt.offsets", "meta.json"])
@pytest.mark.parametrize("damage", ["truncated", "flipped", "longer", "missing"])
def test_a_damaged_store_is_rebuilt(
    write_pairs: Write, new_encoder: Any, tmp_path: Path, name: str, damage: str
) -> None:
    corpus, folder = write_pairs(PAIRS), tmp_path / "store"
    open_store(corpus, new_encoder(), RULES, folder)
    whole = files(folder)
    content = bytearray(whole[name])
    if damage == "missing":
        (folder / name).unlink()
    else:
        content[len(content) // 2] ^= 0x80
        ends = {"truncated": whole[name][:-3], "flipped": bytes(content), "longer": whole[name] + b"}"}
        (folder / name).write_bytes(ends[damage])
    assert contents(open_store(corpus, new_encoder(), RULES, folder)) == KEPT
    assert files(folder) == whole


@pytest.mark.parametrize("meta", [b"[]", b"{}", b"null", b"\xff", b'{"fingerprint": 1, "files": []}'])
def test_a_strange_meta_is_rebuilt(write_pairs: Write, encoder: Any, tmp_path: Path, meta: bytes) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / "store" / "meta.json").write_bytes(meta)
    assert contents(open_store(write_pairs(PAIRS), encoder, RULES, tmp_path / "store")) == KEPT


def test_a_store_is_memory_mapped(write_pairs: Write, encoder: Any, tmp_path: Path) -> None:
    store = open_store(write_pairs(PAIRS), encoder, RULES, tmp_path / "store")
    assert isinstance(store.src.ids.base, np.memmap)
    assert not store.src.ids.flags.writeable


def test_what_a_killed_build_left_is_cleared(write_pairs: Write, encoder: Any, tmp_path: Path) -> None:
    left = tmp_path / "store.building"
    left.mkdir()
    (left / "src.bin").write_bytes(b"half")
    open_store(write_pairs(PAIRS), encoder, RULES, tmp_path / "store")
    assert not left.exists()


def test_all_left_out(write_pairs: Write, encoder: Any, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no pair of 3 can be trained on \(2 empty, 1 ratio\)"):
        open_store(write_pairs([("", "a"), ("b", ""), ("c", "dddddd")]), encoder, RULES, tmp_path / "store")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["text.src", "text.tgt"]


def test_bad_data_leaves_the_old_store(write_pairs: Write, encoder: Any, tmp_path: Path) -> None:
    corpus = write_pairs(PAIRS)
    open_store(corpus, encoder, RULES, tmp_path / "store")
    for path in corpus.paths:
        path.write_bytes(path.read_bytes() + b"\xff\n")
    before = files(tmp_path)
    with pytest.raises(DataError, match="line 7: byte 1"):
        open_store(corpus, encoder, RULES, tmp_path / "store")
    assert files(tmp_path) == before


def test_a_full_disk(
    write_pairs: Write, new_encoder: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_store(write_pairs(PAIRS), new_encoder(), RULES, tmp_path / "store")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(columns._Writer, "add", full)
    before = files(tmp_path)
    with pytest.raises(StorageError, match=r"cannot write the store .*: No space left on device") as caught:
        open_store(write_pairs(PAIRS), new_encoder("other"), RULES, tmp_path / "store")
    assert caught.value.exit_code == 5
    assert files(tmp_path) == before


def test_a_write_that_the_system_refuses(write_pairs: Write, encoder: Any, tmp_path: Path) -> None:
    """A real failure inside write(): files may not grow past a few bytes."""
    corpus = write_pairs([("a" * 25, "b" * 25)] * 500)
    before = files(tmp_path)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(StorageError, match="File too large; nothing was changed"):
            open_store(corpus, encoder, RULES, tmp_path / "store")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert files(tmp_path) == before


def test_a_foreign_folder_is_not_touched(write_pairs: Write, encoder: Any, tmp_path: Path) -> None:
    corpus = write_pairs(PAIRS)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("years of work")
    before = files(tmp_path)
    with pytest.raises(UsageError, match=r"holds thesis\.tex"):
        open_store(corpus, encoder, RULES, tmp_path / "mine")
    with pytest.raises(UsageError, match="is a file"):
        open_store(corpus, encoder, RULES, corpus.sources[0])
    assert files(tmp_path) == before


def test_memory_does_not_grow_with_the_corpus(write_pairs: Write, new_encoder: Any, tmp_path: Path) -> None:
    peaks = []
    for count in (8_192, 32_768):
        corpus = write_pairs([("four words of source", "vier Wörter Ziel")] * count)
        tracemalloc.start()
        open_store(corpus, new_encoder(), RULES, tmp_path / "store")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.5 * peaks[0]
