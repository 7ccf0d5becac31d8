"""Many pictures on one sheet, as a PNG: what a generator draws, for people."""

import io
import math

import numpy as np
import numpy.typing as npt

from regard.errors import UsageError

GAP = 2  # pixels between two pictures
_PAPER = 128


def sheet(pictures: npt.NDArray[np.uint8], columns: int = 0, *, enlarged: int = 1) -> bytes:
    """Pictures (N, C, H, W) in rows, left to right, as a PNG; 0 columns make it about square."""
    from PIL import Image

    if not len(pictures):
        raise UsageError("a sheet needs a picture")
    columns = min(columns or math.ceil(math.sqrt(len(pictures))), len(pictures))
    rows = math.ceil(len(pictures) / columns)
    channels, height, width = pictures.shape[1:]
    down, across = height + GAP, width + GAP
    paper = np.full((rows * down - GAP, columns * across - GAP, channels), _PAPER, np.uint8)
    for number, picture in enumerate(pictures):
        top, left = down * (number // columns), across * (number % columns)
        paper[top : top + height, left : left + width] = picture.transpose(1, 2, 0)
    image = Image.fromarray(paper[..., 0] if channels == 1 else paper)
    if enlarged > 1:
        image = image.resize((enlarged * image.width, enlarged * image.height), Image.Resampling.NEAREST)
    held = io.BytesIO()
    image.save(held, "PNG", optimize=True)
    return held.getvalue()


def as_png(picture: npt.NDArray[np.uint8]) -> bytes:
    """One picture (C, H, W) as a PNG."""
    return sheet(picture[None])
