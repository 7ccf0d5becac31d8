"""Bulk work in parts: put together, they are what one process writes; what is there is not made again."""

import os
from pathlib import Path

import pytest
from command import letters, write_lines

from regard.cli.main import run
from regard.cli.parts import Part, part_of
from regard.errors import UsageError

COUNT = 23


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_lines(
        tmp_path_factory.mktemp("parts") / "in.txt", [*letters(COUNT, seed=3)[0], "", "a\u2028b"]
    )


def test_parts_put_together_are_what_one_process_writes(
    model: Path, lines: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flags = ["translate", "-m", str(model), "-i", str(lines)]
    assert run([*flags, "-o", str(tmp_path / "whole")]) == 0
    for number in (3, 1, 2):
        assert run([*flags, "-o", str(tmp_path / "out"), "--part", f"{number}/3"]) == 0
    parts = sorted(tmp_path.glob("out.*"))
    assert [path.name for path in parts] == ["out.1-of-3", "out.2-of-3", "out.3-of-3"]
    assert b"".join(path.read_bytes() for path in parts) == (tmp_path / "whole").read_bytes()
    before = parts[1].stat().st_mtime_ns
    assert run([*flags, "-o", str(tmp_path / "out"), "--part", "2/3"]) == 0
    assert parts[1].stat().st_mtime_ns == before
    assert "out.2-of-3 is there already" in capsys.readouterr().err


def test_any_number_of_parts_holds_every_line_once(lines: Path) -> None:
    def read(part: Part) -> list[str]:
        with part.reading() as found:
            return list(found)

    whole = read(Part(1, 1, lines, Path("out")))
    assert len(whole) == COUNT + 2
    for of in (2, 7, 25, 40):
        shares = [read(Part(number, of, lines, Path("out"))) for number in range(1, of + 1)]
        assert [line for share in shares for line in share] == whole
        assert max(map(len, shares)) - min(map(len, shares)) <= 1


def test_what_fails_leaves_no_part_and_what_is_older_is_made_again(lines: Path, tmp_path: Path) -> None:
    part = Part(2, 3, lines, tmp_path / "out")

    def fail() -> None:
        with part.writing() as write:
            write("a line")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert list(tmp_path.iterdir()) == []
    with part.writing() as write:
        write("a line")
    assert part.path.read_bytes() == b"a line\n"
    assert part.there(tmp_path)
    os.utime(part.path, ns=(1, 1))
    assert not part.there(tmp_path)


@pytest.mark.parametrize("asked", ["0/3", "4/3", "1", "1/", "a/b", "-1/3", "1/9999999", ""])
def test_what_is_no_part_is_refused(asked: str) -> None:
    with pytest.raises(UsageError, match="must be I/N"):
        part_of(asked, Path("in"), Path("out"))


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["-o", "out"], "needs a file that can be read again"),
        (["-i", "in"], "needs a file that can be read again"),
        (["-i", "in", "-o", "out.gz"], "does not end with .gz"),
        (["-i", "in.srt", "-o", "out"], "shares out the lines of a file"),
        (["-i", "in", "-o", "out", "--document"], "shares out the lines of a file"),
    ],
)
def test_a_part_needs_files_of_lines(
    flags: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["translate", "-m", "none", "--part", "1/2", *flags]) == 2
    assert words in capsys.readouterr().err
