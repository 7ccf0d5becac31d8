"""The demo: digits in fonts, a generator of them, a sheet at the end, and it goes on where it stopped."""

from pathlib import Path

import numpy as np
import pytest
from drawing import SETTINGS, hasten

from regard.errors import UsageError
from regard.tasks.gan import TASK
from regard.tasks.gan.demo import Options, demo


def test_it_ends_with_a_sheet_and_commands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    hasten(monkeypatch)
    quick = SETTINGS | {"train.minutes": 0.0, "train.max_steps": 1}
    out = tmp_path / "demo"
    for _ in range(2):  # the second time it is finished already
        demo(Options(output=out), count=60, more=quick)
    said = capsys.readouterr().out
    assert "of its drawings are taken for the digit that was asked for" in said
    assert f"draw -m {out} --class 7" in said
    held = np.load(out / "data" / "train.glyphs.npz")
    assert held["images"].shape == (60, 28, 28)
    assert sorted(set(held["labels"].tolist())) == list("0123456789")
    assert (held["images"][:, 0, 0] == 0).all()
    assert (out / "drawings.png").read_bytes().startswith(b"\x89PNG")


def test_flags_of_other_demos_mean_nothing() -> None:
    with pytest.raises(UsageError, match="--to means nothing to task=gan"):
        TASK.demo(to="de")
    with pytest.raises(UsageError, match="--from means nothing to task=gan"):
        TASK.demo(source="en")
