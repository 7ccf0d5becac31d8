"""Lines in and out: every kind of file, and nothing that is a line break only to Unicode."""

import gzip
import os
import threading
from pathlib import Path

import pytest

from regard.cli.streams import reading, refuse_same_file, writing
from regard.errors import DataError, UsageError


def lines_of(path: Path) -> list[str]:
    with reading(path) as lines:
        return list(lines)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"", []),
        (b"a", ["a"]),
        (b"a\n\nb\n", ["a", "", "b"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"\xef\xbb\xbfa\n\xef\xbb\xbfb\n", ["a", "\ufeffb"]),
        ("a\u2028b\u0085c\x0bd\x1ce\n".encode(), ["a\u2028b\u0085c\x0bd\x1ce"]),
        (b"x" * 1_000_000 + b"\n", ["x" * 1_000_000]),
    ],
    ids=["empty", "no end", "empty line", "CRLF", "BOM", "other breaks", "1 MB"],
)
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_what_a_line_is(raw: bytes, expected: list[str], pack, tmp_path: Path):
    (tmp_path / "in").write_bytes(pack(raw))
    assert lines_of(tmp_path / "in") == expected


def test_a_pipe_with_a_name_can_be_read(tmp_path: Path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(b"a\nb\n",))
    writer.start()
    assert lines_of(pipe) == ["a", "b"]
    writer.join()


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        (b"a\n\xffb\n", r"in line 2: byte 1 \(0xff\) is not UTF-8"),
        (b"a\nb\0\n", "in line 2: holds a NUL"),
        (gzip.compress(b"a\n" * 99, mtime=0)[:-9], "in is a truncated or damaged gzip"),
    ],
)
def test_what_is_no_text(raw: bytes, message: str, tmp_path: Path):
    (tmp_path / "in").write_bytes(raw)
    with pytest.raises(DataError, match=message):
        lines_of(tmp_path / "in")


@pytest.mark.parametrize(("name", "message"), [("nowhere", "does not exist"), (".", "is a directory")])
def test_what_is_no_file(name: str, message: str, tmp_path: Path):
    with pytest.raises(DataError, match=message):
        lines_of(tmp_path / name)


@pytest.mark.parametrize("name", ["out", "out.gz"])
def test_lines_come_back(name: str, tmp_path: Path):
    expected = ["ä", "", "b\u2028c"]
    with writing(tmp_path / name) as write:
        for line in expected:
            write(line)
    assert lines_of(tmp_path / name) == expected
    assert (tmp_path / name).read_bytes().startswith(b"\x1f\x8b") is name.endswith(".gz")


def test_a_plain_line_is_there_at_once(tmp_path: Path):
    with writing(tmp_path / "out") as write:
        write("a")
        assert (tmp_path / "out").read_text() == "a\n"


def test_the_input_is_not_overwritten(tmp_path: Path):
    source = tmp_path / "in"
    source.touch()
    (tmp_path / "link").symlink_to(source)
    for output in (source, tmp_path / "link"):
        with pytest.raises(UsageError, match="same file"):
            refuse_same_file(source, output)
    refuse_same_file(source, tmp_path / "out")
    refuse_same_file(Path("-"), Path("-"))
