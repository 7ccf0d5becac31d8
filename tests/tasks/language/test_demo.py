"""`regard demo --task language`: code of this very machine, learned for a moment, written on."""

import os
import shlex
from pathlib import Path

import pytest

from regard.cli import main
from regard.tasks.language import demo

SMALL = {
    "model.d_model": 16,
    "model.n_heads": 2,
    "model.d_ff": 32,
    "model.decoder_layers": 1,
    "data.context": 16,
    "train.minutes": 0.0,
    "train.max_steps": 5,
}


def test_from_the_library_to_text_and_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(demo, "SHARE", 2)
    monkeypatch.setattr(demo, "TOKENS", 7)
    monkeypatch.setattr(demo, "SETTINGS", demo.SETTINGS | SMALL)
    assert main.run(["demo", "--task", "language", "--minutes", "0.05"]) == 0
    out = capfd.readouterr().out
    assert "bits per byte on modules that training never saw" in out
    assert all(prompt in out for prompt in demo.PROMPTS)
    commands = [line.strip() for line in out.partition("Go on with:")[2].splitlines() if line.strip()]
    assert main.run(shlex.split(commands[1])[-2:]) == 0, "the folder is a model"
    assert "the Python standard library of this machine" in capfd.readouterr().out


def test_it_is_the_standard_library() -> None:
    files = demo.library()
    assert 1 < len(files) <= demo.SHARE
    assert {path.parent for path in files} == {Path(os.__file__).parent}


@pytest.mark.parametrize(
    ("flags", "said"),
    [(["--to", "fr"], "--to means nothing to task=language"), (["-o", "thesis"], "thesis")],
)
def test_what_cannot_be_shown(
    flags: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter").touch()
    assert main.run(["demo", "--task", "language", *flags]) == 2
    assert said in capfd.readouterr().err
    assert [path.name for path in (tmp_path / "thesis").iterdir()] == ["chapter"]


def test_a_task_without_a_demo(capfd: pytest.CaptureFixture[str]) -> None:
    assert main.run(["demo", "--task", "embed"]) == 2
    assert "task=embed has no demo" in capfd.readouterr().err
