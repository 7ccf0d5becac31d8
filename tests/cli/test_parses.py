"""Structural positions from the command line: trees beside the text, and what is said without them."""

import subprocess
from pathlib import Path

import pytest
from command import QUICK, Run, complaint, letters, write_lines

STRUCTURAL = [*QUICK, "--set", "positions.kind=structural", "--set", "train.max_steps=40"]


def conllu(lines: list[str]) -> str:
    """Every word hangs on the one before it."""
    rows = []
    for line in lines:
        words = enumerate(line.split(), 1)
        rows += ["\t".join([str(i), word, *"____", str(i - 1), *"___"]) for i, word in words]
        rows += [""]
    return "\n".join(rows) + "\n"


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trees")
    for name, count, seed in (("train", 120, 1), ("test", 9, 2)):
        src, tgt = letters(count, seed)
        write_lines(folder / f"{name}.src", src)
        write_lines(folder / f"{name}.tgt", tgt)
        (folder / f"{name}.conllu").write_text(conllu(src), encoding="utf-8")
    return folder


def train(regard: Run, data: Path, out: Path, *more: object) -> subprocess.CompletedProcess[str]:
    return regard("train", data / "train.src", data / "train.tgt", "-o", out, *STRUCTURAL, *more)


@pytest.fixture(scope="module")
def trained(data: Path, regard: Run) -> Path:
    validation = ["--valid", data / "test.src", data / "test.tgt", "--valid-parses", data / "test.conllu"]
    done = train(regard, data, data / "model", "--parses", data / "train.conllu", *validation)
    assert done.returncode == 0, done.stderr
    return data / "model"


def test_translate_and_evaluate_read_the_trees(data: Path, trained: Path, regard: Run) -> None:
    source, parses = data / "test.src", ["--parses", data / "test.conllu"]
    done = regard("translate", "-m", trained, "-i", source, *parses)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 9
    one = regard("translate", "-m", trained, "-i", source, *parses, "--batch-size", 1)
    assert one.stdout == done.stdout
    scored = regard("evaluate", "-m", trained, source, data / "test.tgt", *parses)
    assert scored.returncode == 0, scored.stderr


def test_without_trees_there_is_one_line(data: Path, trained: Path, regard: Run) -> None:
    assert "--parses" in complaint(regard("translate", "-m", trained, "-i", data / "test.src"))
    assert "train.src; give them with --parses" in complaint(train(regard, data, data / "none"))
    valid = ["--parses", data / "train.conllu", "--valid", data / "test.src", data / "test.tgt"]
    assert "test.src; give them with --valid-parses" in complaint(train(regard, data, data / "none", *valid))
    assert not (data / "none").exists()


def test_other_trees_are_refused_with_their_line(data: Path, trained: Path, regard: Run) -> None:
    done = regard("translate", "-m", trained, "-i", data / "test.src", "--parses", data / "train.conllu")
    assert "train.conllu line" in complaint(done)
    said = complaint(train(regard, data, data / "none", "--parses", data / "test.conllu"))
    assert "test.conllu line" in said
    assert "train.src line" in said


def test_trees_that_nobody_reads_are_refused(data: Path, model: Path, regard: Run) -> None:
    parses = ["--parses", data / "train.conllu"]
    done = train(regard, data, data / "none", *parses, "--set", "positions.kind=rotary")
    assert "positions.kind=rotary reads no trees" in complaint(done)
    done = regard("translate", "-m", model, "-i", data / "train.src", *parses)
    assert "reads no dependency trees" in complaint(done)
    orphan = train(regard, data, data / "none", *parses, "--valid-parses", data / "test.conllu")
    assert "--valid" in complaint(orphan)


def test_the_same_command_goes_on_and_other_trees_are_another_run(
    data: Path, trained: Path, regard: Run, tmp_path: Path
) -> None:
    validation = ["--valid", data / "test.src", data / "test.tgt", "--valid-parses", data / "test.conllu"]
    again = train(regard, data, trained, "--parses", data / "train.conllu", *validation)
    assert again.returncode == 0, again.stderr
    assert "is finished" in again.stderr
    flat = (data / "train.conllu").read_text().replace("\t2\t_", "\t1\t_")  # some hang elsewhere
    (tmp_path / "flat.conllu").write_text(flat)
    other = train(regard, data, trained, "--parses", tmp_path / "flat.conllu", *validation)
    assert "training data" in complaint(other)
