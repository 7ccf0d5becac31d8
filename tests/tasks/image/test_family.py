"""Every variant of the family is a model that can be built, on data that are always there."""

from pathlib import Path

import pytest
import torch

from regard.compare.family import Comparison
from regard.config import Config, merge
from regard.errors import UsageError
from regard.models import build
from regard.tasks.image import TASK
from regard.tasks.image.demo import write_glyphs
from regard.tasks.image.family import SETTINGS, VARIANTS

SIZES = {"image.height": 28, "image.width": 28, "image.channels": 1, "image.patch": 4, "image.classes": 31}


@pytest.mark.parametrize("name", VARIANTS)
def test_a_variant_can_be_built(name: str) -> None:
    torch.manual_seed(1)
    config = merge(Config(), TASK.defaults() | SETTINGS | SIZES | {"model.dropout": 0.0} | VARIANTS[name])
    assert build(config)(torch.zeros(2, 1, 28, 28)).shape == (2, 31)


def test_the_glyphs_are_written_once(tmp_path: Path) -> None:
    path = write_glyphs(tmp_path, "train", 31, 1)
    before = path.stat().st_mtime_ns
    assert write_glyphs(tmp_path, "train", 31, 1).stat().st_mtime_ns == before
    assert TASK.family().data == "regard.tasks.image.family:drawn"
    examples = TASK.read([path])
    assert len(examples.train.labels) == 31


def test_a_comparison_takes_keys_of_the_task(tmp_path: Path) -> None:
    files = {"train": [tmp_path], "test": [tmp_path]}
    assert Comparison(tmp_path, TASK, files, "tiny", SETTINGS, 0.1).overrides["image.flip"] == "never"
    with pytest.raises(UsageError, match=r"unknown config key image\.flop"):
        Comparison(tmp_path, TASK, files, "tiny", {"image.flop": 1}, 0.1)
