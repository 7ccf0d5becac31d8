"""Figures: SVG that parses, with a cell a weight and every word; PNG of the same."""

import xml.etree.ElementTree as ElementTree

import pytest
import torch

from regard.errors import UsageError
from regard.look.figure import heat_map, shade

NAMESPACE = "{http://www.w3.org/2000/svg}"


def texts(svg: str) -> list[str]:
    return [each.text or "" for each in ElementTree.fromstring(svg).iter(f"{NAMESPACE}text")]


def test_a_figure_has_a_cell_a_weight_and_all_words(seen):
    svg = seen.figure().to_svg()
    root = ElementTree.fromstring(svg)
    cells = len(seen.source.words) * len(seen.target.words)
    legend, sheet = 20, 1
    assert len(list(root.iter(f"{NAMESPACE}rect"))) == cells + legend + sheet
    assert set(texts(svg)) >= {word.text for word in (*seen.source.words, *seen.target.words)}


def test_layer_head_kind_and_pieces_are_followed(seen):
    drawn = seen.figure(kind="encoder", layer=0, head=2, pieces=True)
    assert drawn.title == "encoder.0.self, head 2"
    weights = seen.map("encoder", 0).weights[2]
    shades = [shade(weight) for weight in weights.flatten().tolist()]
    assert [cell.colour for cell in drawn.cells[: weights.numel()]] == shades


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ({"head": 3}, "heads 0 to 2, there is no head 3"),
        ({"layer": 9}, "there is no map cross 9; there are encoder 0"),
        ({"kind": "sideways", "layer": 0}, "there is no map sideways 0"),
    ],
)
def test_what_is_not_there_is_named(seen, wish, message):
    with pytest.raises(UsageError, match=message):
        seen.figure(**wish)


def test_hostile_words_stay_text():
    nasty = ["<script>alert(1)</script>", "a&b", "\x00\x1b\ud800", "$x^2", "]]>"]
    figure = heat_map(torch.rand(5, 5), nasty, nasty, "</title><script>")
    assert "<script" not in figure.to_svg()
    assert nasty[0] in texts(figure.to_svg())
    assert figure.to_png().startswith(b"\x89PNG")


def test_png_has_the_size_of_the_figure(seen):
    figure = seen.figure()
    data = figure.to_png(dpi=72)
    width, height = (int.from_bytes(data[i : i + 4], "big") for i in (16, 20))
    assert abs(width - figure.width) <= 1
    assert abs(height - figure.height) <= 1


def test_shades_grow_darker():
    lightness = [sum(int(shade(i / 20)[j : j + 2], 16) for j in (1, 3, 5)) for i in range(21)]
    assert lightness == sorted(lightness, reverse=True)
