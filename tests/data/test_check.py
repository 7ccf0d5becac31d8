"""The report on a corpus: every kind is found, counted as training counts it, and shown safely."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from regard.config import DataConfig
from regard.data.check import check
from regard.data.corpus import Corpus
from regard.data.findings import Finding, Report
from regard.data.store import open_store
from regard.errors import DataError

RULES = DataConfig(max_length=31, max_ratio=3.0)
TROUBLE = [
    ("good", "gut"),
    ("", "leer"),
    ("x" * 40, "y" * 40),
    ("a", "lang"),
    ("good", "gut"),
    ("Berlin", "Berlin"),
    ("odd\u200b\x1b[2J", "selt\ufffdsam"),
    ("good", "gut"),
    ("", ""),
    ("", ""),
]
Write = Callable[..., Corpus]


def by_kind(report: Report) -> dict[str, Finding]:
    return {finding.kind: finding for finding in report.findings}


def lines(finding: Finding) -> list[int]:
    return [example.line for example in finding.examples]


def test_every_kind_is_found(write_pairs: Write, encoder: Any) -> None:
    report = check(write_pairs(TROUBLE), RULES, tokenizer=encoder)
    found = by_kind(report)
    assert {kind: (finding.count, finding.effect, lines(finding)) for kind, finding in found.items()} == {
        "empty": (3, "left out", [2, 9, 10]),
        "over-long": (1, "left out", [3]),
        "ratio": (1, "left out", [4]),
        "duplicate": (2, "kept", [5, 8]),
        "identical": (1, "kept", [6]),
        "odd characters": (1, "kept", [7]),
    }
    assert [example.note for example in found["duplicate"].examples] == ["first in line 1"] * 2
    assert "U+200B zero width space (1)" in found["odd characters"].what
    assert (report.sizes["pairs"], report.kept, report.trains) == (10, 5, True)


def test_counts_are_those_of_the_store(write_pairs: Write, encoder: Any, tmp_path: Path) -> None:
    corpus = write_pairs(TROUBLE * 7)
    report = check(corpus, RULES, tokenizer=encoder)
    stored = open_store(corpus, encoder, RULES, tmp_path / "store").report
    assert (report.sizes["pairs"], report.kept) == (stored.pairs, stored.kept)
    found = by_kind(report)
    assert {reason: found[reason].count for reason in stored.left_out} == stored.left_out


def test_nothing_wrong(write_pairs: Write, encoder: Any) -> None:
    report = check(write_pairs([("one", "eins"), ("two", "zwei")]), RULES, tokenizer=encoder)
    assert report.findings == ()
    assert "training keeps 2 and leaves out 0" in report.text()
    assert "nothing suspicious" in report.text()


@pytest.mark.parametrize("examples", [0, 1, 2])
def test_as_many_examples_as_asked(write_pairs: Write, encoder: Any, examples: int) -> None:
    report = check(write_pairs(TROUBLE), RULES, tokenizer=encoder, examples=examples)
    assert all(len(one.examples) == min(examples, one.count) for one in report.findings)
    assert by_kind(report)["duplicate"].count == 2


def test_long_lines_are_cut_in_examples(write_pairs: Write, encoder: Any) -> None:
    report = check(write_pairs([("word " * 200_000, "kurz"), ("a", "b")]), RULES, tokenizer=encoder)
    [example] = by_kind(report)["over-long"].examples
    assert len(example.src) == 80
    assert example.src.endswith("...")
    assert len(report.text()) < 1000


def test_bad_bytes_are_all_reported(tmp_path: Path, encoder: Any) -> None:
    src, tgt = tmp_path / "a", tmp_path / "b"
    src.write_bytes(b"one\nt\xffwo\nth\0ree\nfour\n")
    tgt.write_bytes(b"eins\nzwei\ndrei\n\xfe\n")
    report = check(Corpus.of([src, tgt]), RULES, tokenizer=encoder)
    [finding] = report.findings
    assert (finding.kind, finding.count, finding.effect) == ("encoding", 3, "training stops")
    assert [(example.file, example.line) for example in finding.examples] == [
        (str(src), 2),
        (str(src), 3),
        (str(tgt), 4),
    ]
    assert (report.sizes["pairs"], report.kept, report.trains) == (4, 1, False)
    assert "training would stop with an error" in report.text()


def test_bad_columns(tmp_path: Path, encoder: Any) -> None:
    path = tmp_path / "a.tsv"
    path.write_text("one\teins\nalone\na\tb\tc\n\n")
    found = by_kind(check(Corpus.of([path]), RULES, tokenizer=encoder))
    assert (found["columns"].count, lines(found["columns"]), lines(found["empty"])) == (2, [2, 3], [4])


def test_unequal_counts(tmp_path: Path, encoder: Any) -> None:
    src, tgt = tmp_path / "a", tmp_path / "b"
    src.write_text("one\ntwo\nthree\n")
    tgt.write_text("eins\n")
    report = check(Corpus.of([src, tgt]), RULES, tokenizer=encoder)
    [example] = by_kind(report)["misaligned"].examples
    assert example.note.startswith(f"{src} has 3 lines but {tgt} has 1 line")
    assert not report.trains


def test_no_pair_left(write_pairs: Write, encoder: Any) -> None:
    report = check(write_pairs([("", "a")]), RULES, tokenizer=encoder)
    assert not report.trains
    assert "nothing is left" in report.text()


def test_duplicates_across_files(tmp_path: Path, encoder: Any) -> None:
    paths = [tmp_path / name for name in ("a.tsv", "b.tsv")]
    paths[0].write_text("x\ty\none\teins\n")
    paths[1].write_text("two\tzwei\n\none\teins\n")
    report = check(Corpus.of(paths), RULES, tokenizer=encoder)
    [example] = by_kind(report)["duplicate"].examples
    assert (example.file, example.line, example.note) == (str(paths[1]), 3, f"first in {paths[0]} line 2")
    three = check(Corpus.of([*paths, paths[1]]), RULES, tokenizer=encoder)
    assert f"{paths[1]} line 3: one | eins" in three.text()


def test_nothing_reaches_the_terminal_raw(write_pairs: Write, encoder: Any) -> None:
    shown = check(write_pairs(TROUBLE), RULES, tokenizer=encoder).text()
    assert all(line.isprintable() for line in shown.splitlines())
    assert "odd<U+200B><U+001B>[2J" in shown


def test_report_as_json(write_pairs: Write, encoder: Any) -> None:
    report = check(write_pairs(TROUBLE), RULES, tokenizer=encoder)
    back = json.loads(json.dumps(report.to_dict()))
    assert (back["pairs"], back["kept"], back["trains"]) == (10, 5, True)
    assert back["findings"][0]["examples"][0] == {
        "file": report.files[0], "line": 2, "src": "", "tgt": "leer", "note": "",
    }  # fmt: skip


def test_missing_and_truncated_files_cannot_be_checked(tmp_path: Path, encoder: Any) -> None:
    path = tmp_path / "a.tsv"
    with pytest.raises(DataError, match="does not exist"):
        check(Corpus.of([path]), tokenizer=encoder)
    path.write_bytes(gzip.compress(b"one\teins\n" * 1000, mtime=0)[:-9])
    with pytest.raises(DataError, match="truncated or damaged gzip"):
        check(Corpus.of([path]), tokenizer=encoder)


def test_real_sentences_with_a_lost_line(shared_data: Path, tmp_path: Path, encoder: Any) -> None:
    """Without a line of the target, the report says so and says where."""
    folder = shared_data / "multi30k"
    german = gzip.decompress((folder / "train.de.gz").read_bytes()).splitlines(keepends=True)
    del german[12345]
    target = tmp_path / "train.de"
    target.write_bytes(b"".join(german))
    found = by_kind(check(Corpus.of([folder / "train.en.gz", target]), tokenizer=encoder))
    assert found["misaligned"].count == 1
    [slip] = found["slipped"].examples
    assert 12_001 <= slip.line <= 13_001


def test_learns_the_vocabulary_of_training(write_pairs: Write) -> None:
    """Without a tokenizer, tokens are those of a vocabulary learned from these very lines."""
    text = "the cat sat on the mat and the dog sat on the log"
    corpus = write_pairs([(text, text + " too")] * 50)
    report = check(corpus, DataConfig(max_length=20))
    assert len(text) > 20
    assert report.kept == 50
