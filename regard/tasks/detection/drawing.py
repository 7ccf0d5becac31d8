"""Boxes on the picture they were found in, with their names, in a colour a class."""

import io
from collections.abc import Sequence
from pathlib import Path

from regard.errors import printable
from regard.images.picture import flattened, open_picture
from regard.tasks.detection.detector import Object

COLOURS = ("#e6194b", "#3cb44b", "#4363d8", "#f58231", "#911eb4", "#008080", "#9a6324", "#808000", "#000075")
_PAPER = 480  # pixels that the longer side of a small picture is brought to, so that names can be read


def drawn(source: Path | bytes, objects: Sequence[Object], names: Sequence[str]) -> bytes:
    """The picture with its objects, as a PNG."""
    from PIL import Image, ImageDraw, ImageFont

    image = flattened(open_picture(source)).convert("RGB")
    times = max(1, -(-_PAPER // max(image.size)) if max(image.size) < _PAPER // 2 else 1)
    image = image.resize((image.width * times, image.height * times), Image.Resampling.NEAREST)
    pen = ImageDraw.Draw(image)
    letters = max(13, max(image.size) // 28)
    font = ImageFont.load_default(letters)
    for one in reversed(objects):  # the surest lies on top
        colour = COLOURS[names.index(one.name) % len(COLOURS)]
        left, top, right, bottom = (value * times for value in one.box)
        pen.rectangle((left, top, right, bottom), outline=colour, width=max(2, max(image.size) // 300))
        text = f"{printable(one.name)[:24]} {one.score:.0%}"
        width = pen.textlength(text, font=font) + 4
        height = letters + 4
        y = top - height if top >= height else top
        pen.rectangle((left, y, left + width, y + height), fill=colour)
        pen.text((left + 2, y + 1), text, fill="#ffffff", font=font)
    held = io.BytesIO()
    image.save(held, "PNG")
    return held.getvalue()
