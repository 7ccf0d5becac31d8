import json
from pathlib import Path

import pytest

from regard.errors import UsageError
from regard.training.metrics import METRICS, Metrics, read_metrics, require_tensorboard


def test_lines_are_readable_at_once_and_what_was_not_measured_is_left_out(tmp_path: Path) -> None:
    with Metrics(tmp_path, step=0) as metrics:
        metrics.write({"step": 3, "loss": 0.5, "valid_loss": None})
        assert json.loads((tmp_path / METRICS).read_text()) == {"step": 3, "loss": 0.5}


def test_going_on_cuts_the_file_back(tmp_path: Path) -> None:
    lines = [json.dumps({"step": step, "loss": 1 / step}) for step in (2, 4, 6)]
    (tmp_path / METRICS).write_text("\n".join([*lines, '{"step": 8, "lo']))
    with Metrics(tmp_path, step=4) as metrics:
        metrics.write({"step": 5})
    assert [record["step"] for record in read_metrics(tmp_path / METRICS)] == [2, 4, 5]
    assert (tmp_path / METRICS).read_text().startswith("\n".join(lines[:2]) + "\n")


def test_a_missing_file_has_no_lines(tmp_path: Path) -> None:
    assert read_metrics(tmp_path / METRICS) == []


def test_tensorboard_gets_the_same_numbers(tmp_path: Path) -> None:
    board = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    with Metrics(tmp_path, step=0, tensorboard=True) as metrics:
        metrics.write({"step": 3, "loss": 0.5})
    events = board.EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    (event,) = events.Scalars("loss")
    assert (event.step, event.value) == (3, 0.5)


def test_a_missing_tensorboard_is_said_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "tensorboard", None)
    with pytest.raises(UsageError, match="pip install tensorboard"):
        require_tensorboard()


def test_lines_that_are_not_ours_are_left_out(tmp_path: Path) -> None:
    strange = ["[" * 10**5, '{"step": ' + "9" * 400 + "}", '{"step": 1, "seconds": "x"}', '{"step": true}']
    strange += ['{"step": 1, "loss": NaN}', '{"step": 1, "a": {"b": 1}}', "3", "\x1b"]
    (tmp_path / METRICS).write_text("\n".join([*strange, '{"step": 2, "loss": 3.5}']))
    assert read_metrics(tmp_path / METRICS) == [{"step": 2, "loss": 3.5}]
