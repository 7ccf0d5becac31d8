"""Patches that look at patches: every kind of position, stem and pooling; the theorem as a start."""

import pytest
import torch
from pictures import config_of

from regard.attention.grid import ON_GRID, Grid, GridRotary
from regard.attention.quadratic import Quadratic
from regard.attention.record import record
from regard.models.vision import ConvolutionalVision, Vision, build_vision

PICTURES = torch.linspace(-1, 1, 2 * 8 * 12).view(2, 1, 8, 12).sin() * 3


@pytest.mark.parametrize("kind", ON_GRID)
@pytest.mark.parametrize("pooling", ["attention", "mean"])
def test_every_position_gives_logits_and_gradients(kind: str, pooling: str) -> None:
    torch.manual_seed(1)
    model = Vision(config_of({"positions.kind": kind, "image.pooling": pooling}))
    logits = model(PICTURES)
    assert logits.shape == (2, 3)
    logits.logsumexp(1).sum().backward()
    lost = [name for name, weight in model.named_parameters() if weight.grad is None]
    assert lost == []


@pytest.mark.parametrize("kind", ON_GRID)
def test_only_without_positions_the_order_of_patches_means_nothing(kind: str) -> None:
    torch.manual_seed(1)
    more = {"positions.kind": kind, "image.stem": "patches", "image.pooling": "mean"}
    model = Vision(config_of(more)).eval()
    with torch.no_grad():  # what is learned begins with little to say
        for module in model.modules():
            if hasattr(module, "table") and isinstance(module.table, torch.nn.Parameter):
                module.table.normal_()
    swapped = PICTURES.clone()
    swapped[..., :4], swapped[..., 4:8] = PICTURES[..., 4:8], PICTURES[..., :4]
    same = torch.allclose(model(PICTURES), model(swapped), atol=1e-5)
    assert same == (kind == "none")


def test_patches_are_those_of_a_naive_loop() -> None:
    model = Vision(config_of({"image.stem": "patches"})).eval()
    found = model.stem(PICTURES)  # (2, 6, 12)
    kernel = model.stem.read
    for row in range(2):
        for column in range(3):
            patch = PICTURES[:, :, 4 * row : 4 * row + 4, 4 * column : 4 * column + 4].flatten(1)
            wanted = patch @ kernel.weight.flatten(1).mT + kernel.bias
            torch.testing.assert_close(found[:, 3 * row + column], wanted)


def test_a_turned_product_depends_on_the_offset_alone() -> None:
    torch.manual_seed(2)
    grid = Grid(5, 7)
    positions = GridRotary(10, grid)
    q, k = torch.randn(1, 1, 1, 10), torch.randn(1, 1, 1, 10)
    turned = positions.turn(q.expand(1, 1, 35, 10)), positions.turn(k.expand(1, 1, 35, 10))
    scores = (turned[0] @ turned[1].mT)[0, 0].view(5, 7, 5, 7)
    assert scores[0, 0, 2, 3].item() == pytest.approx(scores[1, 2, 3, 5].item(), abs=1e-4)
    assert scores[4, 6, 2, 2].item() == pytest.approx(scores[3, 5, 1, 1].item(), abs=1e-4)
    assert abs(scores[0, 0, 2, 3].item() - scores[0, 0, 3, 2].item()) > 1e-3


def test_quadratic_scores_are_those_of_a_naive_loop() -> None:
    torch.manual_seed(3)
    positions = Quadratic(3, (2, 3))
    found = positions.bias(torch.zeros(1, 3, 6, 5), 6)[0]
    line = Quadratic(3)
    along = line.bias(torch.zeros(1, 3, 2, 5), 7, 4)[0]
    for head in range(3):
        alpha = positions.log_sharpness[head].exp()
        for i in range(6):
            for j in range(6):
                step = torch.tensor([j // 3 - i // 3, j % 3 - i % 3])
                wanted = -alpha * (step - positions.centres[head]).square().sum()
                assert found[head, i, j].item() == pytest.approx(wanted.item(), abs=1e-5)
        for i in range(2):
            for j in range(7):
                wanted = -line.log_sharpness[head].exp() * (j - (i + 4) - line.centres[head, 0]).square()
                assert along[head, i, j].item() == pytest.approx(wanted.item(), rel=1e-4, abs=1e-5)


def test_heads_that_begin_as_a_convolution_look_at_their_place() -> None:
    torch.manual_seed(4)
    more = {
        "image.start": "convolution",
        "positions.kind": "quadratic",
        "model.n_heads": 9,
        "model.d_model": 18,
    }
    model = Vision(config_of(more | {"image.patch": 1, "image.height": 5, "image.width": 5})).eval()
    with record() as tape:
        model(PICTURES[:, :, :5, :5])
    weights = tape["encoder.0.self"][0]  # (2, 9, 25, 25)
    assert torch.equal(weights[0], weights[1])  # what is in the picture has no say
    middle = 2 * 5 + 2
    looked = [divmod(int(place), 5) for place in weights[0, :, middle].argmax(-1)]
    assert looked == [(row, column) for row in (1, 2, 3) for column in (1, 2, 3)]


def test_a_place_in_front_can_sum_up() -> None:
    model = Vision(config_of({"image.pooling": "first"})).eval()
    assert model.encode(PICTURES).shape == (2, 7, 12)
    assert model(PICTURES).shape == (2, 3)


def test_convolutions_alone() -> None:
    model = build_vision(config_of({"model.kind": "conv", "model.decoder_layers": 1}))
    assert isinstance(model, ConvolutionalVision)
    assert model(PICTURES).shape == (2, 3)


def test_pictures_that_patches_do_not_fill_are_filled_up() -> None:
    model = Vision(config_of({"image.height": 7, "image.width": 10})).eval()
    assert model.grid == (2, 3)
    assert model(PICTURES[:, :, :7, :10]).shape == (2, 3)
