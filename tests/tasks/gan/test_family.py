"""Every variant of the family of generators can be built, on digits that every machine has."""

from pathlib import Path

import numpy as np
import pytest
import torch

from regard.config import Config, merge
from regard.models import build
from regard.tasks.gan import TASK
from regard.tasks.gan import family as one
from regard.tasks.gan.family import SETTINGS, VARIANTS, drawn

SIZES = {"gan.side": 28, "gan.channels": 1, "gan.classes": 10}


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_draws(name: str) -> None:
    torch.manual_seed(1)
    model = build(merge(Config(), TASK.defaults() | SETTINGS | SIZES | VARIANTS[name]))
    with torch.no_grad():
        assert model(torch.randn(2, 64), torch.tensor([3, 7])).shape == (2, 1, 28, 28)
    assert (model.generator.attention is None) == (name == "none")


def test_splits_differ_and_are_written_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(one, "COUNTS", {"train": 20, "valid": 20, "test": 20})
    files, settings = drawn(tmp_path)
    held = [np.load(files[part][0])["images"] for part in ("train", "valid", "test")]
    assert [len(each) for each in held] == [20, 20, 20]
    assert not np.array_equal(held[0], held[1])
    before = files["train"][0].stat().st_mtime_ns
    assert drawn(tmp_path)[0]["train"][0].stat().st_mtime_ns == before
    assert settings == SETTINGS
    assert TASK.family().data == "regard.tasks.gan.family:drawn"
