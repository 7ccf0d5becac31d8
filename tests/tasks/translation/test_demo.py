"""`regard demo`: phrases to files, a model, its scores, and commands that can be typed as printed."""

import re
import shlex
from pathlib import Path

import pytest

from regard.cli import main
from regard.tasks.translation import demo


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A demo of seconds: what it learns is not the point here."""
    monkeypatch.setattr(demo, "SPLITS", {"train": 400, "valid": 10, "test": 12})
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_from_nothing_to_scores_and_commands(small: Path, capfd: pytest.CaptureFixture[str]):
    flags = ["demo", "--to", "fr", "--minutes", "0.05"]
    assert main.run(flags) == 0
    out, err = capfd.readouterr()
    assert "12 phrases that training never saw" in out
    assert re.search(r"BLEU \d+\.\d, chrF \d+\.\d, exact match \d+\.\d%", out)
    assert out.count("  reference    ") == demo.SHOWN
    assert "400 phrases en-fr" in err
    assert "What every head looked at: runs/demo/attention.html" in out
    assert "regard-data" in (small / "runs/demo/attention.html").read_text(encoding="utf-8")
    commands = [line.strip() for line in out.partition("Go on with:")[2].splitlines() if line.strip()]
    assert [re.search(r"(translate|look|show|train) ", line)[1] for line in commands] == [
        "translate",
        "look",
        "show",
        "train",
    ]
    assert main.run(shlex.split(commands[2])[-2:]) == 0, "the folder is a model"
    capfd.readouterr()
    assert main.run(flags) == 0
    again, err = capfd.readouterr()
    assert "finished" in err
    assert again.splitlines()[2] == out.splitlines()[2], "the same scores without training again"


def test_splits_share_nothing_and_repeat_nothing(small: Path):
    corpora = demo.write_phrases(demo.Options(), small)
    sources = {split: [pair.src for pair in corpus.pairs()] for split, corpus in corpora.items()}
    assert {split: len(lines) for split, lines in sources.items()} == demo.SPLITS
    assert len(set(sources["test"])) == len(sources["test"])
    assert not set(sources["train"]) & (set(sources["valid"]) | set(sources["test"]))
    before = {path.name: path.read_bytes() for path in small.iterdir()}
    demo.write_phrases(demo.Options(), small)
    assert before == {path.name: path.read_bytes() for path in small.iterdir()}


@pytest.mark.parametrize(
    ("flags", "named"),
    [(["--to", "klingon"], "klingon"), (["--from", "xx"], "xx"), (["-o", "thesis"], "thesis")],
)
def test_what_cannot_be_shown(flags: list[str], named: str, small: Path, capfd: pytest.CaptureFixture[str]):
    (small / "thesis").mkdir()
    (small / "thesis" / "chapter").touch()
    assert main.run(["demo", *flags]) == 2
    err = capfd.readouterr().err.splitlines()[-1]
    assert err.startswith("regard: error: ")
    assert named in err
    assert [path.name for path in (small / "thesis").iterdir()] == ["chapter"]
    assert not (small / "runs").exists()


def test_a_demo_without_time_scores_some_phrases_and_says_what_it_lacks(
    small: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(demo, "SPLITS", {"train": 400, "valid": 10, "test": 31})
    monkeypatch.setattr(demo, "PILOT", 17)
    monkeypatch.setattr(demo, "LEAST_SECONDS", 0.0)
    monkeypatch.setattr(demo, "SCORING_SHARE", 0.0)
    assert main.run(["demo", "--minutes", "0.02"]) == 0
    out, err = capfd.readouterr()
    assert "17 phrases that training never saw" in out
    assert "hardly teach it anything" in err
    assert "too few to learn the phrases: regard demo --fresh --minutes" in err
