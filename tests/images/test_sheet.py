"""Sheets: every picture stands where it should, grey and in colour."""

import io

import numpy as np
import pytest
from PIL import Image

from regard.errors import UsageError
from regard.images.sheet import GAP, as_png, sheet


@pytest.mark.parametrize("channels", [1, 3])
def test_every_picture_stands_in_its_place(channels: int) -> None:
    pictures = np.random.default_rng(1).integers(0, 256, (7, channels, 5, 3), np.uint8)
    made = np.asarray(Image.open(io.BytesIO(sheet(pictures, 4))))
    assert made.shape[:2] == (2 * 5 + GAP, 4 * 3 + 3 * GAP)
    for number, picture in enumerate(pictures):
        top, left = (5 + GAP) * (number // 4), (3 + GAP) * (number % 4)
        found = made[top : top + 5, left : left + 3]
        assert np.array_equal(found, picture[0] if channels == 1 else picture.transpose(1, 2, 0))


def test_it_is_about_square_and_may_be_enlarged() -> None:
    pictures = np.zeros((10, 1, 4, 4), np.uint8)
    assert Image.open(io.BytesIO(sheet(pictures))).size == (4 * 4 + 3 * GAP, 3 * 4 + 2 * GAP)
    assert Image.open(io.BytesIO(sheet(pictures[:1], enlarged=3))).size == (12, 12)
    assert Image.open(io.BytesIO(as_png(pictures[0]))).size == (4, 4)


def test_nothing_is_no_sheet() -> None:
    with pytest.raises(UsageError, match="a sheet needs a picture"):
        sheet(np.zeros((0, 1, 4, 4), np.uint8))
