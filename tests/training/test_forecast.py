from pathlib import Path
from typing import Any

import pytest

from regard.training.forecast import Forecast, forecast
from regard.training.state import State

NEEDED = 200


@pytest.mark.parametrize(
    ("bounds", "steps", "time"),
    [
        ({"train__max_steps": 240}, 240, "8 min 00 s"),
        ({"train__max_steps": 240, "train__accumulate": 3}, 240, "24 min"),
        ({"train__max_steps": 240, "train__max_epochs": 2}, None, None),
        ({"train__minutes": 60.0}, int((3600 - 3 - 180) * 0.95 / 2), "54 min"),
    ],
)
def test_the_first_bound_counts(
    toy: Any,
    tmp_path: Path,
    bounds: Any,
    steps: int | None,
    time: str | None,
) -> None:
    trainer = toy.trainer(tmp_path, **bounds)
    trainer.clock = lambda: 0.0
    line = forecast(trainer, State(), 2.0).line()
    if steps is None:
        assert line.endswith(f"{2 * trainer.feed.count(0)} steps, 2.0 epochs")
    else:
        assert f"{steps:,} steps" in line
        assert line.startswith(f"about {time}")


@pytest.mark.parametrize(
    ("bounds", "seconds", "what"),
    [
        ({"train__max_steps": 199}, 0.1, "set train.max_steps to 200 or more"),
        ({"train__max_epochs": 1}, 0.1, "set train.max_epochs to 34 or more"),
        ({"train__minutes": 2.0}, 1.0, "--minutes 4 or more, a smaller --preset or a less busy machine"),
        ({"train__minutes": 2.0, "train__accumulate": 5}, 0.2, "--minutes 4 or more"),
    ],
)
def test_too_few_steps_to_learn_from_are_told_with_what_to_do(
    toy: Any, tmp_path: Path, bounds: Any, seconds: float, what: str
) -> None:
    trainer = toy.trainer(tmp_path, **bounds)
    trainer.clock = lambda: 0.0
    ahead = forecast(trainer, State(), seconds)
    assert trainer.feed.count(0) == 6
    assert ahead.steps < NEEDED
    assert ahead.advice(NEEDED) is not None
    assert f"{ahead.steps} step" in ahead.advice(NEEDED)
    assert what in ahead.advice(NEEDED)


def test_enough_steps_need_no_advice() -> None:
    assert (
        Forecast(each=1.0, batches=NEEDED, per_epoch=7, accumulate=1, bound="minutes").advice(NEEDED) is None
    )
    assert Forecast(each=1.0, batches=3 * NEEDED - 1, per_epoch=7, accumulate=3, bound="steps").advice(NEEDED)
