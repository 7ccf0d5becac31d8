"""`regard train` as a process: from files to a folder, resuming, and every input it must refuse."""

import gzip
import json
import os
import resource
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from command import QUICK, SMALL, Run, command, complaint, environment, letters, write_lines

from regard.cli.train import Options, spread_valid
from regard.config import known_keys
from regard.errors import UsageError

Files = tuple[Path, Path]


def test_the_folder_is_complete_and_stdout_is_left_alone(model: Path):
    names = {path.name for path in model.iterdir()}
    whole = {
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "generation.json",
        "README.md",
        "metrics.jsonl",
    }
    assert whole <= names
    assert ".lock" not in names


def test_the_same_command_on_a_finished_run_does_nothing(model: Path, letter_files: Files, regard: Run):
    before = (model / "model.safetensors").read_bytes()
    done = regard("train", *letter_files, "-o", model, *SMALL)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert "finished" in done.stderr
    assert (model / "model.safetensors").read_bytes() == before


def test_tsv_gzip_lists_windows_line_ends_and_settings_in_order(tmp_path: Path, regard: Run):
    src, tgt = letters(120)
    table = "\ufeff" + "".join(f"{a}\t{b}\r\n" for a, b in zip(src, tgt, strict=True)) + "\t\r\n"
    (tmp_path / "pairs.tsv.gz").write_bytes(gzip.compress(table.encode(), mtime=0))
    write_lines(tmp_path / "more,pairs.tsv", [f"{a}\t{b}" for a, b in zip(*letters(40, seed=2), strict=True)])
    (tmp_path / "settings.toml").write_text("[train]\nmax_steps = 5\nseed = 7\n[model]\nd_ff = 32\n")
    done = regard(
        *("train", "pairs.tsv.gz", "--valid", "more,pairs.tsv", "-o", "out", *QUICK[:2]),
        *("--config", "settings.toml", "--set", "train.seed=11", "--set", "model.d_model=16"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "120 of 121 pairs" in done.stderr
    assert (
        "Hugging Face cannot (--set positions.kind=sinusoidal for that)" in done.stderr
    )  # before the first step
    config = json.loads((tmp_path / "out" / "config.json").read_text())
    assert (config["train"]["max_steps"], config["train"]["seed"]) == (5, 11)
    assert (config["model"]["d_model"], config["model"]["d_ff"]) == (16, 32)
    assert config["train"]["batch_tokens"] == 2048, "the preset's"


def test_lists_with_commas_are_one_corpus(tmp_path: Path, regard: Run):
    for name, seed in (("a", 1), ("b", 2)):
        src, tgt = letters(50, seed=seed)
        write_lines(tmp_path / f"{name}.low", src)
        write_lines(tmp_path / f"{name}.up", tgt)
    more = ("--set", "train.max_steps=2")
    done = regard("train", "a.low,b.low", "a.up,b.up", "-o", "out", *QUICK, *more, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "of 100 pairs" in done.stderr
    done = regard("train", "a.low,b.low", "a.up", "-o", "other", *QUICK, cwd=tmp_path)
    assert "2 source files but 1 target file" in complaint(done)


def test_training_further(model: Path, letter_files: Files, tmp_path: Path, regard: Run):
    bounds = [f"--set={key}" for key in ("train.max_steps=3", "train.lr=0.0001", "data.max_length=64")]
    done = regard("train", *letter_files, "--from", model, "-o", tmp_path / "further", *bounds)
    assert done.returncode == 0, done.stderr
    done = regard("evaluate", "-m", tmp_path / "further", *letter_files, "--beam", 1, "--json")
    assert json.loads(done.stdout)["bleu"] > 50


# What must be refused, with one line and nothing lost ---------------------------------------------


def _bad_files(folder: Path) -> dict[str, tuple[list[Path], list[str]]]:
    """Arguments that cannot be trained on, and what the complaint must name."""
    good, short, empty = folder / "good", folder / "short", folder / "empty"
    write_lines(good, ["a b", "c d", "e"])
    write_lines(short, ["A B", "C D"])
    empty.touch()
    (folder / "latin").write_bytes(b"A\n\xfcber\nC\n")
    (folder / "zero").write_bytes(b"A\nB\nC\0\n")
    (folder / "cut.gz").write_bytes(gzip.compress(b"A\nB\nC\n", mtime=0)[:-9])
    (folder / "odd.tsv").write_text("a\tb\nc\n")
    return {
        "missing": ([good, folder / "nowhere"], ["nowhere", "does not exist"]),
        "empty": ([good, empty], ["empty is empty"]),
        "directory": ([good, folder], [str(folder), "directory"]),
        "unequal": ([good, short], ["good has 3 lines", "short has 2 lines"]),
        "not UTF-8": ([good, folder / "latin"], ["latin line 2", "UTF-8"]),
        "NUL": ([good, folder / "zero"], ["zero line 3", "NUL"]),
        "damaged gzip": ([good, folder / "cut.gz"], ["cut.gz", "gzip"]),
        "columns": ([folder / "odd.tsv"], ["odd.tsv line 2", "column"]),
        "three files": ([good, good, good], ["3 files given"]),
    }


def test_bad_files(tmp_path: Path, regard: Run, subtests: pytest.Subtests):
    for case, (files, named) in _bad_files(tmp_path).items():
        with subtests.test(case):
            message = complaint(regard("train", *files, "-o", tmp_path / "out", *QUICK))
            assert all(word in message for word in named), message
            assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("flags", "named"),
    [
        (["--set", "model.d_modle=64"], ["model.d_modle", "model.d_model?"]),
        (["--set", "model.d_model=wide"], ["model.d_model", "whole number", "wide"]),
        (
            ["--set", "model.n_heads=6", "--set", "model.d_model=512"],
            ["n_heads (6) must divide d_model (512)"],
        ),
        (["--set", "model.d_model"], ["KEY=VALUE"]),
        (["--preset", "huge"], ["huge", "tiny, small, base, deep"]),
        (["--config", "nowhere.toml"], ["nowhere.toml"]),
        (["--minutes=-3"], ["train.minutes (-3)"]),
        (["--set", "text.vocab_size=90000"], ["90000"]),
        (["--device", "warp"], ["warp"]),
        (["--from", "nowhere"], ["nowhere"]),
        (["--valid", "nowhere.tsv"], ["nowhere.tsv"]),
    ],
    ids=lambda value: " ".join(value)[:30] if isinstance(value, list) else None,
)
def test_bad_settings(flags: list[str], named: list[str], letter_files: Files, tmp_path: Path, regard: Run):
    message = complaint(regard("train", *letter_files, "-o", tmp_path / "out", *flags, cwd=tmp_path))
    assert all(word in message for word in named), message
    assert not (tmp_path / "out" / "model.safetensors").exists()


def test_an_unreadable_file(letter_files: Files, tmp_path: Path):
    secret = write_lines(tmp_path / "secret", ["A"])
    secret.chmod(0)
    # Root reads everything, unless it gives up that right.
    humbly = [] if os.geteuid() else ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    if humbly and not shutil.which("setpriv"):
        pytest.skip("root without setpriv can read every file")
    arguments = command("train", letter_files[0], secret, "-o", tmp_path / "out")
    done = subprocess.run(
        [*humbly, *arguments], env=environment(), capture_output=True, text=True, check=False
    )
    message = complaint(done)
    assert str(secret) in message
    assert "Permission denied" in message


def test_a_folder_of_something_else_is_left_alone(letter_files: Files, tmp_path: Path, regard: Run):
    thesis = write_lines(tmp_path / "thesis.tex", ["years of work"])
    for flags in ([], ["--fresh"]):
        assert str(tmp_path) in complaint(regard("train", *letter_files, "-o", tmp_path, *QUICK, *flags))
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    assert "is a file" in complaint(regard("train", *letter_files, "-o", thesis, *QUICK))
    assert thesis.read_text() == "years of work\n"


def test_another_run_in_the_folder_is_not_overwritten(model: Path, letter_files: Files, regard: Run):
    before = (model / "model.safetensors").read_bytes()
    message = complaint(regard("train", *letter_files, "-o", model, *SMALL, "--set", "train.seed=2"))
    assert "train.seed was 1 and is 2" in message
    assert "--fresh" in message
    assert (model / "model.safetensors").read_bytes() == before


def test_a_second_trainer_is_refused_and_the_first_stops_politely(
    letter_files: Files, tmp_path: Path, regard: Run
):
    out = tmp_path / "out"
    endless = ("train", *letter_files, "-o", out, *QUICK, "--set", "train.max_steps=1000000")
    first = subprocess.Popen(command(*endless), env=environment(), stderr=subprocess.PIPE, text=True)
    try:
        _wait_for(lambda: (out / "metrics.jsonl").exists() and (out / "metrics.jsonl").stat().st_size, first)
        message = complaint(regard(*endless))
        assert str(out) in message
        assert str(first.pid) in message
        first.send_signal(signal.SIGTERM)
        _, said = first.communicate(timeout=120)
    finally:
        first.kill()
    assert first.returncode == 143
    assert "Traceback" not in said
    assert list((out / "checkpoints").glob("*")), "it saved before it left"
    assert not (out / ".lock").exists()


def _wait_for(happened, process: "subprocess.Popen[str]") -> None:
    until = time.monotonic() + 120
    while not happened():
        assert process.poll() is None, process.communicate()[1]
        assert time.monotonic() < until
        time.sleep(0.05)


def test_a_disk_that_takes_no_more(letter_files: Files, tmp_path: Path, regard: Run):
    """A limit on the size of files is refused by the system in the same way as a full disk."""
    out = tmp_path / "out"
    done = regard(
        *("train", *letter_files, "-o", out, *QUICK, "--set", "train.max_steps=3"),
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000)),
    )
    complaint(done, 5)
    assert not (out / "model.safetensors").exists()
    done = regard("train", *letter_files, "-o", out, *QUICK, "--set", "train.max_steps=3")
    assert done.returncode == 0, "with room again the same command ends well"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can mount a small disk")
def test_a_full_disk(letter_files: Files, tmp_path: Path, regard: Run):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", disk], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting is not allowed here")
    try:
        done = regard("train", *letter_files, "-o", disk / "out", *QUICK, "--set", "train.max_steps=3")
        assert "No space left on device" in complaint(done, 5)
    finally:
        subprocess.run(["umount", disk], check=True)


# The pieces --------------------------------------------------------------------------------------


def test_help_lists_every_key_with_its_default(regard: Run):
    lines = [line.split() for line in regard("train", "--help").stdout.splitlines()]
    for key, default in known_keys().items():
        shown = str(default).lower() if isinstance(default, bool) else str(default) or '""'
        assert [key, shown] in lines


def test_help_says_before_training_where_a_translator_cannot_go(regard: Run):
    told = " ".join(regard("train", "--help").stdout.split())
    assert "Hugging Face has no layout for it" in told
    assert "--set positions.kind=sinusoidal" in told


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("a b --valid c d -o e", "a b --valid c --valid d -o e"),
        ("--valid c d a b -o e", "--valid c --valid d a b -o e"),
        ("--valid v.tsv t.tsv -o e", "--valid v.tsv t.tsv -o e"),
        ("--valid v.tsv.gz t.tsv -o e", "--valid v.tsv.gz t.tsv -o e"),
        ("a b --valid=c d", "a b --valid c --valid d"),
        ("a b --valid pairs -o e", "a b --valid pairs -o e"),
        ("a b --valid", "a b --valid"),
        ("a -- --valid c d", "a -- --valid c d"),
        ("--task language --valid c d -o e", "--task language --valid c d -o e"),
        ("--valid c d --task=language", "--valid c d --task=language"),
        ("--task translation --valid c d", "--task translation --valid c --valid d"),
        ("--task nonsense --valid c d", "--task nonsense --valid c --valid d"),
        ("--valid c d -- --task language", "--valid c --valid d -- --task language"),
    ],
)
def test_valid_takes_one_file_or_two(given: str, expected: str):
    assert spread_valid(given.split()) == expected.split()


def test_later_settings_win():
    options = Options([Path("a")], Path("o"), overrides=["train.minutes=3", "train.minutes=4"])
    assert options.changes() == {"train.minutes": 4}
    options = Options([Path("a")], Path("o"), overrides=["train.minutes=3"], minutes=5.0)
    assert options.changes() == {"train.minutes": 5.0}
    with pytest.raises(UsageError, match="KEY=VALUE"):
        Options([Path("a")], Path("o"), overrides=["nonsense"]).changes()
