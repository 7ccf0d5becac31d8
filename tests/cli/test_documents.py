"""`regard documents`: from Python files to a model that writes docstrings, by the command line."""

import json
import re
import shlex
from pathlib import Path

import pytest

from regard.cli import documents, main
from regard.text.docstrings import split_of

pytest.importorskip("rouge_score", reason="rouge-score is not installed")


@pytest.fixture(scope="module")
def modules(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with documents for every split."""
    folder = tmp_path_factory.mktemp("modules")
    for number in range(60):
        functions = (
            f'def get_{word}(self):\n    """Return the {word} of it."""\n    return self.{word}{number}\n\n'
            for word in ("name", "size", "colour")
        )
        (folder / f"m{number}.py").write_text("".join(functions), encoding="utf-8")
    assert {split_of(f"m{number}") for number in range(60)} == {"train", "valid", "test"}
    return folder


def test_from_files_to_docstrings(
    modules: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    quick = {"train.max_steps": 30, "model.d_model": 32, "decode.max_extra": 12, "decode.beam": 1}
    monkeypatch.setattr(documents, "SETTINGS", quick)
    monkeypatch.chdir(tmp_path)
    flags = ["documents", str(modules), "--minutes", "0.5"]
    assert main.run(flags) == 0
    out, err = capfd.readouterr()
    assert re.search(r"ROUGE-L \d+\.\d, ROUGE-1 \d+\.\d, BLEU \d+\.\d", out)
    assert out.count("  docstring  ") == documents.SHOWN
    assert re.search(r"writing documents to runs/documents/data: \d+ for train", err)
    config = json.loads(Path("runs/documents/config.json").read_text(encoding="utf-8"))
    assert config["attention"]["kind"] == "local"
    assert config["data"]["max_length"] == config["decode"]["max_source"] == 16384
    command = next(line for line in out.splitlines() if "translate -m" in line)
    Path("my_module.py").write_text("def get_name(self):\n    return self.name7\n", encoding="utf-8")
    assert main.run(shlex.split(command)[1:]) == 0
    assert len(capfd.readouterr().out.splitlines()) == 1, "a document in, a line out"
    test = "runs/documents/data/test.docstrings.tsv"
    assert main.run(["evaluate", "-m", "runs/documents", test, "--rouge", "--json"]) == 0
    scores = json.loads(capfd.readouterr().out)
    assert {"bleu", "chrf", "signature", "sentences", "seconds", "tokens_per_second"} < scores.keys()
    assert f"ROUGE-L {scores['rouge_l']:.1f}" in out
    assert main.run(["evaluate", "-m", "runs/documents", test, "--json"]) == 0
    assert "rouge_l" not in json.loads(capfd.readouterr().out)
    assert main.run(["evaluate", "-m", "runs/documents", test, "--rouge"]) == 0
    assert f"ROUGE-L   {scores['rouge_l']:6.2f}" in capfd.readouterr().out


@pytest.mark.parametrize(
    ("given", "named"),
    [("missing", "missing is no folder"), ("empty", "has no docstrings for train"), ("full", "thesis")],
)
def test_what_cannot_be_learned_from(
    given: str,
    named: str,
    modules: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
):
    monkeypatch.chdir(tmp_path)
    Path("empty").mkdir()
    Path("thesis").mkdir()
    Path("thesis/chapter").touch()
    arguments = [str(modules), "-o", "thesis"] if given == "full" else [given]
    assert main.run(["documents", *arguments]) == 2
    err = capfd.readouterr().err.splitlines()
    assert err[-1].startswith("regard: error: ")
    assert named in err[-1]
    assert not Path("runs").exists()


def test_a_document_that_is_too_long(tmp_path: Path, model: Path, capfd: pytest.CaptureFixture[str]):
    long = tmp_path / "long.txt"
    long.write_text("a b c\n" * 100, encoding="utf-8")
    assert main.run(["translate", "-m", str(model), "--document", "-i", str(long)]) == 2
    assert re.search(r"has \d+ tokens, .* takes 64", capfd.readouterr().err.splitlines()[-1])
