"""What a recogniser is worth: scores, the delay that a comparison tells, and each head by what WER loses."""

from pathlib import Path

import pytest
from listeners import write_listener

from regard.cli.main import run as command
from regard.tasks.speech import TASK


@pytest.fixture(scope="module")
def few(calls: Path) -> Path:
    """Two calls."""
    path = calls.parent / "few.tsv"
    path.write_text("".join(calls.read_text().splitlines(keepends=True)[:3]))
    return path


def test_a_comparison_tells_the_delay(few: Path, folder: Path, tmp_path: Path) -> None:
    found = TASK.compared(folder, [few])
    assert list(found.scores)[:2] == ["wer", "cer"]
    # 2 layers that hear 2 places ahead, 4 frames each, and what convolutions hear of the next ones
    assert found.scores["delay"].value == pytest.approx((2 * 2 * 4 + 3) * 0.01)
    full = write_listener(tmp_path / "full", **{"attention.kind": "full", "attention.ahead": -1})
    assert TASK.compared(full, [few]).scores["delay"].value == pytest.approx(2.0)


def test_heads_are_ranked_by_what_is_lost_in_wer(
    few: Path, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "heads.json"
    assert command(["look", "--ablate", "-m", str(folder), str(few), "-o", str(out)]) == 0
    said = capsys.readouterr().out
    assert said.startswith("WER ")
    assert "decoder.1.cross" in said
    assert len(said.splitlines()) == 3 + 3 * 2 * 2  # three attentions of two layers, two heads each
    assert out.exists()
