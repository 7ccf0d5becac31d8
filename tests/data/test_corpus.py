"""Reading pairs: what a line is, and one clear error for each way a file can be bad."""

import errno
import gc
import gzip
import io
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data import lines as lines_module
from regard.data.corpus import Corpus, Pair
from regard.data.lines import Fault, read_lines
from regard.errors import DataError, StorageError, UsageError


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    """A good source and a good target file of three lines."""
    src, tgt = tmp_path / "a.en", tmp_path / "a.de"
    src.write_bytes(b"one\ntwo\nthree\n")
    tgt.write_bytes("eins\nzwei\ndreißig\n".encode())
    return src, tgt


def texts(path: Path) -> list[str]:
    return [raw.decode() for raw in read_lines(path)]


def refused(corpus: Corpus) -> str:
    """The message with which the early check turns a corpus down; always one line."""
    with pytest.raises(DataError) as caught:
        corpus.check_files()
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_pairs_in_order(two: tuple[Path, Path]) -> None:
    pairs = list(Corpus.of(two).pairs())
    assert pairs == [Pair("one", "eins", 1), Pair("two", "zwei", 2), Pair("three", "dreißig", 3)]
    assert list(Corpus.of(two).lines()) == ["one", "eins", "two", "zwei", "three", "dreißig"]


@pytest.mark.parametrize("inside", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c", "\r"])
def test_only_newline_ends_a_line(tmp_path: Path, inside: str) -> None:
    path = tmp_path / "a"
    path.write_bytes(f"left{inside}right\nnext\n".encode())
    assert texts(path) == [f"left{inside}right", "next"]


def test_crlf_and_bom_are_stripped(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"\xef\xbb\xbfone\r\n\r\n\xef\xbb\xbfthree\r\n")
    assert texts(path) == ["one", "", "\ufeffthree"]  # a BOM is one only at the very start


def test_last_line_needs_no_newline(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"one\n\ntwo")
    assert texts(path) == ["one", "", "two"]


def test_gzip_is_known_by_its_content_not_its_name(tmp_path: Path) -> None:
    path = tmp_path / "named.txt"
    path.write_bytes(gzip.compress(b"\xef\xbb\xbfone\r\ntwo\n", mtime=0) + gzip.compress(b"three\n", mtime=0))
    assert texts(path) == ["one", "two", "three"]
    plain = tmp_path / "named.gz"
    plain.write_bytes(b"one\n")
    assert texts(plain) == ["one"]


@given(
    st.lists(st.text(st.characters(exclude_characters="\n\r\0\ufeff", exclude_categories=["Cs"])), min_size=1)
)
def test_any_text_comes_back(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    folder = tmp_path_factory.mktemp("lines")
    path, zipped = folder / "a", folder / "a.gz"
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    zipped.write_bytes(gzip.compress(path.read_bytes(), mtime=0))
    assert list(Corpus.of([path, zipped]).pairs()) == [Pair(line, line, n) for n, line in enumerate(lines, 1)]


def test_a_megabyte_in_one_line(tmp_path: Path) -> None:
    src, tgt = tmp_path / "a", tmp_path / "b"
    src.write_bytes(b"x" * (1 << 20) + b"\nshort\n")
    tgt.write_bytes(b"y\nshort\n")
    assert [len(pair.src) for pair in Corpus.of([src, tgt]).pairs()] == [1 << 20, 5]


def test_missing(two: tuple[Path, Path]) -> None:
    two[1].unlink()
    assert f"{two[1]} does not exist" in refused(Corpus.of(two))


def test_directory(two: tuple[Path, Path], tmp_path: Path) -> None:
    assert f"{tmp_path} is a directory" in refused(Corpus.of([tmp_path, two[1]]))


@pytest.mark.parametrize("content", [b"", gzip.compress(b"", mtime=0)])
def test_empty_file(two: tuple[Path, Path], content: bytes) -> None:
    two[0].write_bytes(content)
    assert f"{two[0]} is empty" in refused(Corpus.of(two))


def test_pipe(two: tuple[Path, Path], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "not a regular file" in refused(Corpus.of([tmp_path / "pipe", two[1]]))


def test_unreadable(two: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(self: Path, *_: object) -> None:  # file modes do not stop the super-user
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(self))

    monkeypatch.setattr(Path, "open", denied)
    assert refused(Corpus.of(two)) == f"cannot open {two[0]}: Permission denied"


def test_failing_disk_is_no_fault_of_the_data(
    two: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Failing(io.RawIOBase):
        def readable(self) -> bool:
            return True

        def readinto(self, _: object) -> int:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(lines_module, "open_file", lambda *_, **__: io.BufferedReader(Failing()))
    with pytest.raises(StorageError, match=r"cannot read .*a\.en: Input/output error"):
        Corpus.of(two).check_files()


@pytest.mark.parametrize(
    ("src", "tgt", "counts"), [(b"1\n2\n3\n", b"1\n", (3, 1)), (b"1\n", b"1\n\n\n4", (1, 4))]
)
def test_unequal_line_counts(two: tuple[Path, Path], src: bytes, tgt: bytes, counts: tuple[int, int]) -> None:
    two[0].write_bytes(src)
    two[1].write_bytes(tgt)
    message = refused(Corpus.of(two))
    assert f"{two[0]} has {counts[0]} line" in message
    assert f"{two[1]} has {counts[1]} line" in message


@pytest.mark.parametrize("side", [0, 1])
def test_invalid_utf8(two: tuple[Path, Path], side: int) -> None:
    two[side].write_bytes(b"one\ngr\xfc\xdfe\nthree\n")
    message = refused(Corpus.of(two))
    assert message.startswith(f"{two[side]} line 2: byte 3 (0xfc) is not UTF-8")


@pytest.mark.parametrize("bad", [b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82"])
def test_strict_about_utf8(two: tuple[Path, Path], bad: bytes) -> None:
    """Over-long forms, surrogates, beyond U+10FFFF, cut short."""
    two[0].write_bytes(b"one\ntwo\n" + bad + b"\n")
    assert f"{two[0]} line 3" in refused(Corpus.of(two))


def test_a_refusal_leaves_no_file_open(two: tuple[Path, Path], tmp_path: Path) -> None:
    """Not even while the error, and with it the frames that read, is still held."""
    two[0].write_bytes(b"one\ntw\xffo\nthree\n")
    parses = tmp_path / "a.conllu"
    parses.write_text("1\tone\t_\t_\t_\t_\t0\t_\t_\t_\n\n" * 9, encoding="utf-8")
    corpora = [Corpus.of(two), Corpus(tables=two[1:]), Corpus(two[1:], two[1:], parses=(parses,))]
    for corpus in corpora:
        with pytest.raises(DataError) as held:
            corpus.check_files()
        files = [each for each in gc.get_objects() if type(each) is io.BufferedReader and not each.closed]
        names = {str(each.name) for each in files}
        assert not names & {str(path) for path in corpus.paths}, held.value


def test_nul(two: tuple[Path, Path]) -> None:
    two[1].write_bytes(b"one\ntwo\nth\0ree\n")
    assert f"{two[1]} line 3: holds a NUL byte" in refused(Corpus.of(two))


@pytest.mark.parametrize("name", ["utf-16-le", "utf-16-be"])
def test_utf16_is_named(two: tuple[Path, Path], name: str) -> None:
    two[0].write_bytes("\ufeffone\ntwo\nthree\n".encode(name))
    assert "it looks like UTF-16" in refused(Corpus.of(two))


@pytest.mark.parametrize("cut", [5, 12, -1, -6])
def test_truncated_gzip(two: tuple[Path, Path], cut: int) -> None:
    two[0].write_bytes(gzip.compress(b"one\ntwo\nthree\n", mtime=0)[:cut])
    assert f"{two[0]} is a truncated or damaged gzip file" in refused(Corpus.of(two))


def test_damaged_gzip(two: tuple[Path, Path]) -> None:
    whole = gzip.compress(os.urandom(3000).hex().encode(), mtime=0)
    for place in (1000, len(whole) - 8, len(whole) - 2):  # in the data, the checksum, the length
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        two[0].write_bytes(damaged)
        assert f"{two[0]} is a truncated or damaged gzip file" in refused(Corpus(two[:1], two[:1]))


def test_table(tmp_path: Path) -> None:
    path = tmp_path / "a.tsv"
    path.write_bytes("\ufeffone\teins\r\n\n \ntwo\t\n".encode())
    pairs = list(Corpus.of([path]).pairs())
    assert pairs == [Pair("one", "eins", 1), Pair("", "", 2), Pair("", "", 3), Pair("two", "", 4)]


@pytest.mark.parametrize(("row", "columns"), [("alone", "1 column"), ("a\tb\tc\td", "4 columns")])
def test_table_with_wrong_columns(tmp_path: Path, row: str, columns: str) -> None:
    path = tmp_path / "a.tsv"
    path.write_text(f"one\teins\n{row}\n")
    assert refused(Corpus.of([path])).startswith(f"{path} line 2: {columns} where a TSV has 2")


def test_several_files_are_aligned_one_by_one(two: tuple[Path, Path], tmp_path: Path) -> None:
    more = tmp_path / "b.en", tmp_path / "b.de"
    more[0].write_text("four\nfive\n")
    more[1].write_text("vier\n")
    corpus = Corpus(sources=(two[0], more[0]), targets=(two[1], more[1]))
    assert f"{more[0]} has 2 lines but {more[1]} has 1 line;" in refused(corpus)
    more[1].write_text("vier\nfünf\n")
    assert [pair.tgt for pair in corpus.pairs()] == ["eins", "zwei", "dreißig", "vier", "fünf"]
    assert [pair.line for pair in corpus.pairs()] == [1, 2, 3, 1, 2]


def test_of_tells_tables_from_sides(tmp_path: Path) -> None:
    a, b, c = (tmp_path / name for name in ("a.tsv", "b.tsv.gz", "c.de"))
    assert Corpus.of([c]) == Corpus(tables=(c,))
    assert Corpus.of([a, b]) == Corpus(tables=(a, b))
    assert Corpus.of([a, c]) == Corpus(sources=(a,), targets=(c,))
    with pytest.raises(UsageError, match="3 files given"):
        Corpus.of([a, b, c])
    with pytest.raises(UsageError, match="2 source files but 1 target files"):
        Corpus(sources=(a, b), targets=(c,))
    with pytest.raises(UsageError, match="either"):
        Corpus()


def test_faults_can_be_collected(two: tuple[Path, Path]) -> None:
    two[0].write_bytes(b"one\n\xff\nth\0ree\nfour\n")
    faults: list[Fault] = []
    pairs = list(Corpus.of(two).pairs(faults.append))
    assert [(fault.kind, fault.line) for fault in faults] == [
        ("encoding", 2),
        ("encoding", 3),
        ("misaligned", 4),
    ]
    assert [pair.src for pair in pairs] == ["one", "\ufffd", "th\ufffdree"]


def test_fingerprint_is_of_the_content(two: tuple[Path, Path], tmp_path: Path) -> None:
    first = Corpus.of(two).fingerprint()
    two[0].rename(tmp_path / "moved")
    moved = tmp_path / "moved", two[1]
    assert Corpus.of(moved).fingerprint() == first
    assert Corpus.of(moved[::-1]).fingerprint() != first
    moved[0].write_bytes(b"one\ntwo\nthrEe\n")
    assert Corpus.of(moved).fingerprint() != first


def test_fingerprint_sees_where_files_end(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("a.tsv", "b.tsv")]
    marks = set()
    for halves in (["1\t1\n2\t2\n", "3\t3\n"], ["1\t1\n", "2\t2\n3\t3\n"]):
        for path, half in zip(paths, halves, strict=True):
            path.write_text(half)
        marks |= {Corpus.of(paths).fingerprint(), Corpus(tuple(paths[:1]), tuple(paths[1:])).fingerprint()}
    assert len(marks) == 4
