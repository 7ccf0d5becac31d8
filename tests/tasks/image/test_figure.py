"""What cards of pictures show: heads that stayed a convolution and those that moved, by their colours."""

import io
from collections.abc import Sequence

import numpy as np
import torch
from PIL import Image, ImageColor

from regard.attention.quadratic import Quadratic
from regard.tasks.image.figure import MOVED, STAYED, heads_picture


def heads(moves: Sequence[float]) -> Quadratic:
    """Nine heads of a kernel, the first of them moved so far to the left."""
    found = Quadratic(9, (5, 7))
    found.begin_as_convolution()
    with torch.no_grad():
        found.centres[: len(moves), 1] -= torch.tensor(moves)
    return found


def painted(picture: Image.Image, colour: str) -> int:
    """Pixels of a panel in that very colour."""
    return int((np.asarray(picture.convert("RGB")) == ImageColor.getrgb(colour)).all(-1).sum())


def test_moved_heads_have_another_colour_in_the_panel_of_their_layer() -> None:
    raw = heads_picture([heads([0.3]), heads([0.8, 0.7]), heads([9.0] * 9)])
    picture = Image.open(io.BytesIO(raw))
    assert picture.format == "PNG"
    wide, tall = picture.size
    assert wide > 2 * tall
    panels = [picture.crop((wide * n // 3, 0, wide * (n + 1) // 3, tall)) for n in range(3)]
    assert [painted(panel, STAYED) > 0 for panel in panels] == [True, True, False]
    assert [painted(panel, MOVED) > 0 for panel in panels] == [False, True, True]
