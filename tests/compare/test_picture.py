"""Pictures: both files, the same bytes twice, and the words that must stand in them."""

import pytest
import torch

from regard.attention.convolution import from_convolution
from regard.compare.cost import Measured, Sizes
from regard.compare.layers import contenders
from regard.compare.picture import draw_cost, draw_family, draw_heads
from regard.compare.trial import Outcome
from regard.errors import StorageError

SIZES = Sizes((64, 128), (4, 8))


def layers() -> list[Measured]:
    found = [Measured(contender) for contender in contenders()]
    for each in found[:-1]:  # the last one has nothing to show
        each.layer = {point: point[0] * point[1] * 1e-6 for point in SIZES.points(each.contender)}
        each.paths = {8: 2, 32: None}
    return found


def families() -> list[Outcome]:
    scores = {"bleu": {"value": 61.23, "label": "BLEU"}, "exact": {"value": 45.6, "label": "exact match, %"}}
    good = Outcome("rotary", {}, None, scores, 12345.6, 78.9, 400.4, 1_234_567, 321)
    return [good, Outcome("rnn", {}, error="no")]


def heads(stem):
    twin = from_convolution(torch.zeros(1, 1, 3, 2))
    return draw_heads(twin.weights(5, 7).detach().numpy(), (5, 7), twin.centres.tolist(), stem)


@pytest.mark.parametrize(
    ("draw", "words"),
    [
        (lambda stem: draw_cost(layers(), SIZES, stem), ["length L", "self-attention, L^1.00"]),
        (lambda stem: draw_family(families(), stem), ["exact match, %", "12,346"]),
        (heads, ["head 6: Δ = (+1, +1)"]),
    ],
)
def test_png_and_svg(draw, words, tmp_path):
    drawn = [path.read_bytes() for path in draw(tmp_path / "one")]
    assert drawn[0].startswith(b"\x89PNG")
    svg = drawn[1].decode()
    assert "<svg" in svg
    assert [word for word in words if word not in svg] == []
    assert [path.read_bytes() for path in draw(tmp_path / "two")] == drawn


def test_a_place_that_cannot_be_written(tmp_path):
    with pytest.raises(StorageError, match="cannot write"):
        draw_family(families(), tmp_path / "missing" / "results")
