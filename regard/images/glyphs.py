"""Pictures that every machine has: letters and digits in the fonts of matplotlib, moved, turned, noisy.

A pure function of the seed. One glyph a picture with its label, or scenes of several with their boxes. After
this file: the demos of the tasks of pictures.
"""

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from regard.images.picture import Pixels

if TYPE_CHECKING:
    from PIL.Image import Image
    from PIL.ImageFont import FreeTypeFont

LETTERS = "0123456789ABDEFGHKLMNPQRSTUVXYZ"  # without those that fonts draw alike: C O W, I J
SCENE_LETTERS = "ABDE2347"
FONTS = tuple(
    f"{family}{style}.ttf"
    for family in ("DejaVuSans", "DejaVuSansMono", "DejaVuSerif")
    for style in ("", "-Bold", "-Oblique" if "Sans" in family else "-Italic")
)
_TURN = 15.0  # degrees, either way
_NOISE = 20.0  # of 255


class Scene(NamedTuple):
    """A picture (C, H, W), boxes (N, 4) of its glyphs (left, top, right, bottom), their numbers (N,)."""

    pixels: Pixels
    boxes: npt.NDArray[np.float64]
    labels: npt.NDArray[np.int64]


@cache
def _font(name: str, size: int) -> "FreeTypeFont":
    import matplotlib
    from PIL import ImageFont

    return ImageFont.truetype(str(Path(matplotlib.get_data_path()) / "fonts" / "ttf" / name), size)


def _drawn(letter: str, size: int, random: np.random.Generator) -> "Image":
    """One glyph in white on black, in some font and turned a little, cut to what can be seen of it."""
    from PIL import Image, ImageDraw

    font = _font(FONTS[int(random.integers(len(FONTS)))], size)
    image = Image.new("L", (2 * size, 2 * size))
    ImageDraw.Draw(image).text((size, size), letter, fill=255, font=font, anchor="mm")
    image = image.rotate(float(random.uniform(-_TURN, _TURN)), Image.Resampling.BILINEAR)
    return image.crop(image.getbbox())


def glyphs(
    count: int, side: int = 28, seed: int = 1, letters: str = LETTERS, *, clean: bool = False
) -> Iterator[tuple[Pixels, str]]:
    """So many pictures (1, side, side) of one glyph each, with their labels, each as often as others.

    `clean` ones are white on black, without noise.
    """
    from PIL import Image

    random = np.random.default_rng([seed, side])
    for number in range(count):
        letter = letters[number % len(letters)]
        glyph = _drawn(letter, int(side * random.uniform(0.5, 0.85)), random)
        paper = Image.new("L", (side, side))
        room = side - glyph.width, side - glyph.height
        at = tuple(int(random.integers(min(0, free), max(0, free) + 1)) for free in room)
        paper.paste(glyph, (at[0], at[1]))
        drawn = np.asarray(paper)[None]
        yield (drawn if clean else _noisy(drawn, random)), letter


def scenes(count: int, side: int = 64, seed: int = 1, letters: str = SCENE_LETTERS) -> Iterator[Scene]:
    """So many pictures (1, side, side) of some glyphs each, which do not cover each other."""
    from PIL import Image

    random = np.random.default_rng([seed, side, len(letters)])
    for _ in range(count):
        paper = np.zeros((side, side), np.uint8)
        boxes: list[Sequence[float]] = []
        labels: list[int] = []
        for _ in range(int(random.integers(1, 6))):
            label = int(random.integers(len(letters)))
            glyph: Image.Image = _drawn(letters[label], int(side * random.uniform(0.22, 0.45)), random)
            left, top = (int(random.integers(max(1, side - span))) for span in glyph.size)
            box = left, top, left + glyph.width, top + glyph.height
            if any(_touch(box, other) for other in boxes) or max(box) > side:
                continue
            values = np.asarray(glyph)
            light = float(random.uniform(0.5, 1.0))
            paper[top : box[3], left : box[2]] = (values * light).astype(np.uint8)
            boxes.append(box)
            labels.append(label)
        held = np.array(boxes, float).reshape(-1, 4)
        yield Scene(_noisy(paper[None], random), held, np.array(labels, np.int64))


def _touch(one: Sequence[float], other: Sequence[float]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _noisy(pixels: Pixels, random: np.random.Generator) -> Pixels:
    """With noise, on a paper of some grey, and dark on light half of the time."""
    paper = random.uniform(0, 60)
    values = np.maximum(pixels, paper) + random.normal(0, _NOISE * random.random(), pixels.shape)
    values = np.clip(values, 0, 255)
    return (255 - values if random.random() < 0.5 else values).astype(np.uint8)
