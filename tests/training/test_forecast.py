from pathlib import Path
from typing import Any

import pytest
import torch

from regard.training import forecast as module
from regard.training.forecast import forecast, seconds_per_batch
from regard.training.state import State


def test_a_rehearsal_leaves_no_trace(toy: Any, tmp_path: Path) -> None:
    trainer, state = toy.trainer(tmp_path, train__max_steps=9), State()
    before, random = [weight.clone() for weight in trainer.weights], torch.get_rng_state()
    assert seconds_per_batch(trainer, state) > 0
    assert all(map(torch.equal, before, trainer.weights))
    assert all(weight.grad is None for weight in trainer.weights)
    assert torch.equal(torch.get_rng_state(), random)
    assert state == State()


@pytest.mark.parametrize(
    ("bounds", "steps", "time"),
    [
        ({"train__max_steps": 240}, 240, "8 min 00 s"),
        ({"train__max_steps": 240, "train__accumulate": 3}, 240, "24 min"),
        ({"train__max_steps": 240, "train__max_epochs": 2}, None, None),
        ({"train__minutes": 60.0}, 1798, "1 h 00 min"),
    ],
)
def test_the_first_bound_counts(
    toy: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    bounds: Any,
    steps: int | None,
    time: str | None,
) -> None:
    monkeypatch.setattr(module, "seconds_per_batch", lambda trainer, state: 2.0)
    trainer = toy.trainer(tmp_path, **bounds)
    trainer.clock = lambda: 0.0
    line = forecast(trainer, State())
    if steps is None:
        assert line.endswith(f"{2 * trainer.feed.count(0)} steps, 2.0 epochs")
    else:
        assert f"{steps:,} steps" in line
        assert line.startswith(f"about {time}")
