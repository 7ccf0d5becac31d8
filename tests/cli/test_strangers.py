"""The command line with what strangers, and people who slip, hand to it: one line, code 2, nothing lost."""

import gzip
import json
import os
from pathlib import Path

import pytest

from regard.cli.main import run
from regard.cli.show import read_card
from regard.cli.streams import reading
from regard.engine.shortlist import FILE
from regard.errors import DataError

DIGITS = "9" * 400
TINY = [
    *(
        "--preset",
        "tiny",
        "--set",
        "train.max_steps=1",
        "--set",
        "model.d_model=12",
        "--set",
        "model.n_heads=2",
    ),
    *("--set", "model.d_ff=8", "--set", "model.encoder_layers=1", "--set", "model.decoder_layers=1"),
    *("--set", "positions.kind=sinusoidal"),
]


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{a} {b}\t{b} {a}\n" for a in "abcdefg" for b in "hijklmn"))
    return path


def complaint(arguments: list[object], capfd: pytest.CaptureFixture[str], code: int = 2) -> str:
    """The one printable line that a command ends with."""
    assert run([str(each) for each in arguments]) == code
    error = capfd.readouterr().err.removesuffix("\n").splitlines()[-1]
    assert error.startswith("regard: error: ")
    assert error.isprintable()
    assert len(error) < 1100
    return error


@pytest.mark.parametrize(
    "arguments",
    [
        ["translate", "-m", "x", "--beam", DIGITS],
        ["translate", "-m", "x", "--beam", "9" * 5000],
        ["translate", "-m", "x", "--batch-size", "9" * 25],
        ["evaluate", "-m", "x", "a", "b", "--batch-size", "-" + "9" * 25],
        ["train", "PAIRS", "-o", "OUT", "--minutes", "nan"],
        ["train", "PAIRS", "-o", "OUT", "--minutes", "inf"],
        ["documents", "-o", "OUT", "--minutes", "nan"],
        ["demo", "-o", "OUT", "--minutes", "-inf"],
        ["train", "PAIRS", "-o", "OUT", "--set", f"model.d_model={DIGITS}"],
        ["train", "PAIRS", "-o", "OUT", "--set", f"train.lr={DIGITS}"],
        ["train", "PAIRS", "-o", "OUT", "--set", f"model.d_model={'9' * 5000}"],
        ["train", "PAIRS", "-o", "OUT", "--set", f"model.norm={'[' * 3000}"],
        ["train", "PAIRS", "-o", "OUT", "--set", f"{'a.' * 3000}b=1"],
        ["train", "PAIRS", "-o", "OUT", "--set", "model.norm=\x1b[2J"],
        ["train", "PAIRS", "-o", "OUT", "--set", "x" * 10**6],
        ["train", "PAIRS", "-o", "OUT", "--from", "LOOP"],
        ["show", "LOOP"],
    ],
    ids=lambda arguments: " ".join(arguments)[:40],
)
def test_flags_that_are_no_values(arguments, pairs: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    (tmp_path / "loop").symlink_to("loop")
    names = {"PAIRS": pairs, "OUT": tmp_path / "out", "LOOP": tmp_path / "loop"}
    complaint([names.get(each, each) for each in arguments], capfd)
    assert not (tmp_path / "out").exists()


def test_names_that_are_no_utf8_work_to_the_end(
    pairs: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    data, out = tmp_path / os.fsdecode(b"d\xe9\x1b.tsv"), tmp_path / os.fsdecode(b"out\xff")
    pairs.rename(data)
    for arguments in (
        ["check", data],
        ["check", data, "--json"],
        ["train", data, "-o", out, *TINY],
        ["show", out],
        ["shortlist", "-m", out],
        ["evaluate", "-m", out, data, "--json"],
        ["translate", "-m", out, "-i", data, "-o", tmp_path / os.fsdecode(b"t\xff"), "--shortlist"],
        [
            "train",
            data,
            "-o",
            tmp_path / os.fsdecode(b"more\xff"),
            "--from",
            out,
            "--set",
            "train.max_steps=1",
        ],
        ["export", "-m", out, "--to", "ctranslate2", "-o", tmp_path / os.fsdecode(b"ct2\xff")],
    ):
        code = run([str(each) for each in arguments])
        said = capfd.readouterr()
        assert code == 0, said.err
        assert "\x1b" not in said.out + said.err
        if "--json" in arguments:
            json.loads(said.out)
    assert "`d<0xE9><U+001B>.tsv`" in (out / "README.md").read_text()


def test_words_of_any_length_are_learned_from(pairs: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    with pairs.open("a") as file:
        file.write(f"{'xyz' * 100_000}\ta b\n{'ab' * 700} c\td\n")
    assert run(["check", str(pairs)]) == 0
    said = capfd.readouterr().out
    assert "long words: 2 (kept)" in said
    assert "over-long: 1 (left out)" in said
    assert run(["train", str(pairs), "-o", str(tmp_path / "out"), *TINY]) == 0


def test_a_card_and_settings_of_a_stranger(model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    place = tmp_path / "model"
    place.mkdir()
    for path in model.iterdir():
        if path.is_file():
            (place / path.name).write_bytes(path.read_bytes())
    (place / "README.md").write_text("# A\x1b]0;owned\x07\nb\u202e\n")
    assert read_card(place) == "# A<U+001B>]0;owned<U+0007>\nb<U+202E>\n"
    (place / "README.md").write_bytes(b"#" * 2**23)
    assert "more than" in complaint(["show", place], capfd)
    for value in ("x" * 3_000_000, "\x1b[2J", [[1]] * 10**5):
        (place / "generation.json").write_text(json.dumps({"beam": value}))
        assert "decode.beam takes a whole number" in complaint(
            ["translate", "-m", place, "-i", model / "README.md"], capfd
        )


def test_a_line_without_an_end(tmp_path: Path):
    path = tmp_path / "line.gz"
    path.write_bytes(gzip.compress(b"a\n" + b"a" * 2**23))
    with reading(path) as lines:
        assert next(lines) == "a"
        with pytest.raises(DataError, match=r"line 2 has more than 4,194,304 bytes"):
            next(lines)


def test_a_line_that_no_model_takes_is_refused_before_it_is_cut(
    model: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
):
    path = tmp_path / "long.txt"
    path.write_text("a b\n" + "a" * 10**6)
    whole = complaint(["translate", "-m", model, "-i", path, "--lines"], capfd)
    assert "line 2 has 1,000,000 characters" in whole
    capfd.readouterr()
    path.write_text("a b\n" * 2**20 + "a")
    assert "translate parts of it" in complaint(["translate", "-m", model, "-i", path, "--document"], capfd)


def test_files_have_the_mode_that_the_umask_gives(pairs: Path, tmp_path: Path):
    before = os.umask(0o027)
    try:
        assert run(["train", str(pairs), "-o", str(tmp_path / "out"), *TINY]) == 0
        assert run(["shortlist", "-m", str(tmp_path / "out")]) == 0
        for kind in ("ctranslate2",):
            assert (
                run(["export", "-m", str(tmp_path / "out"), "--to", kind, "-o", str(tmp_path / "theirs")])
                == 0
            )
    finally:
        os.umask(before)
    assert (tmp_path / "out" / FILE).exists()
    made = [path for place in ("out", "theirs") for path in (tmp_path / place).rglob("*")]
    modes = {path.name: oct(path.stat().st_mode & 0o777) for path in made if path.is_file()}
    assert set(modes.values()) == {"0o640"}, modes
    assert {path.stat().st_mode & 0o777 for path in made if path.is_dir()} == {0o750}
    assert (tmp_path / "theirs").stat().st_mode & 0o777 == 0o750
