import time

import pytest
import torch

from regard.process import speed


def test_the_quickest_run_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(speed, "SECONDS", 0.0)
    pauses = iter([0.3, 0.03])  # the first run warms up
    assert speed.best(lambda: time.sleep(next(pauses))) >= 0.03
    assert not list(pauses)


@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_rates_are_those_of_the_work(monkeypatch: pytest.MonkeyPatch, kind: torch.dtype) -> None:
    """With a clock of our own: 2 m n k operations, and a copy that reads and writes."""
    monkeypatch.setattr(speed, "SIZES", (5, 7, 11))
    monkeypatch.setattr(speed, "COPIED", 13)
    ran = []
    monkeypatch.setattr(speed, "best", lambda work: ran.append(work()) or 0.5)
    assert speed.multiplications(kind) == 2 * 5 * 7 * 11 / 0.5
    assert speed.bandwidth() == 2 * 13 / 0.5
    assert ran[0].shape == (5, 7)
    assert bool((ran[0] == 11).all())
    assert bool((ran[1] == 1).all())
