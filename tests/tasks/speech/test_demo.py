"""The demo from end to end, with a few calls and steps."""

from pathlib import Path

import pytest
from listeners import SMALL

from regard.audio.tones import KEYS, call
from regard.errors import UsageError
from regard.tasks.speech import TASK
from regard.tasks.speech.demo import Options, demo


def test_it_ends_with_an_error_rate_and_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    small = {key: value for key, value in SMALL.items() if key != "speech.heard"}
    demo(Options(tmp_path / "demo", minutes=0.0), (8, 3, 3), **small | {"train.max_steps": 2})
    said = capsys.readouterr().out
    assert "WER " in said
    assert "dialled" in said
    assert "transcribe -m" in said


def test_flags_of_other_demos_are_refused() -> None:
    with pytest.raises(UsageError, match="--to means nothing"):
        TASK.demo(to="de")


def test_calls_are_functions_of_their_numbers() -> None:
    one, other = call(5), call(5)
    assert one.text == other.text
    assert (one.samples == other.samples).all()
    assert set(one.text.split()) <= KEYS.keys()
    assert len(one.times) == len(one.text.split())
    assert len(call(6).samples) != len(one.samples)
