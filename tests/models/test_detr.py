"""Queries that are vectors: a set, whatever their order. Against transformers: tests/interop/test_detr.py."""

import pytest
import torch

from regard.config import Config, merge
from regard.errors import UsageError
from regard.models.detr import Detr
from regard.tasks.detection import TASK

SHAPE = {
    "model.d_model": 12,
    "model.n_heads": 3,
    "model.d_ff": 20,
    "model.dropout": 0.0,
    "detection.height": 24,
    "detection.width": 40,
    "detection.channels": 1,
    "detection.stride": 8,
    "detection.queries": 5,
    "detection.classes": 3,
    "detection.anchors": False,
    "detection.centred": False,
    "detection.denoising": 0,
}


def test_queries_in_another_order_find_the_same_in_that_order() -> None:
    torch.manual_seed(2)
    model = TASK.build(merge(Config(), TASK.defaults() | SHAPE)).eval()
    assert isinstance(model, Detr)
    torch.nn.init.normal_(model.boxes.outer.weight)
    pixels, order = torch.randn(2, 1, 24, 40), torch.tensor([3, 0, 4, 2, 1])
    with torch.no_grad():
        before = model(pixels)
        model.query.copy_(model.query[order])
        after = model(pixels)
    assert len(before.classes) == 3
    torch.testing.assert_close(after.classes[-1], before.classes[-1][:, order])
    torch.testing.assert_close(after.boxes[-1], before.boxes[-1][:, order])
    assert not torch.allclose(after.boxes[-1], before.boxes[-1])


def test_what_needs_boxes_is_refused_without_anchors() -> None:
    with pytest.raises(UsageError, match=r"it goes with detection.centred=false and detection.denoising=0"):
        merge(Config(), TASK.defaults() | SHAPE | {"detection.denoising": 4})
