"""A picture file to plain pixels: upright, 8 bits a channel, grey or RGB, on white where it was transparent.

    open_picture   bytes that a stranger wrote -> a Pillow image; bounded, and of few formats
    flattened      any mode, turned as its EXIF says -> mode L or RGB
    pixels         that, cut or padded to one size -> (C, H, W) uint8

What is no picture is a `PictureError` in a line, so that a reader of many can count it and go on. Before this
file: Pillow; after it: `regard.data.pictures`, and whoever is handed a single picture.
"""

import io
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from regard.config.image import FITS
from regard.errors import DataError, UsageError, error_line
from regard.foreign import MOST_PICTURE, MOST_PIXELS

if TYPE_CHECKING:
    from PIL.Image import Image

Pixels = npt.NDArray[np.uint8]
# What can be opened: formats that nothing has to be run for.
FORMATS = ("PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF", "PPM")
_ENDINGS = {".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm", ".pbm"}
_PAPER = 255  # what shows through where a picture is transparent, and lies around one that is padded


class PictureError(DataError):
    """A file that is no picture, or none that can be read."""


@dataclass(frozen=True)
class Fit:
    """The shape that pictures are brought to, and what is done with those of other proportions.

    `crop` fills the shape and cuts off what is too much, `pad` keeps all and fills up with white, `stretch`
    changes the proportions.
    """

    height: int
    width: int
    channels: int = 3
    how: str = "crop"

    def __post_init__(self) -> None:
        if self.how not in FITS:
            raise UsageError(f"how a picture is fitted ({self.how}) must be one of {', '.join(FITS)}")

    @property
    def shape(self) -> tuple[int, int, int]:
        """(C, H, W)."""
        return self.channels, self.height, self.width


def named_as_picture(path: Path) -> bool:
    """Whether a file is called as pictures are."""
    return path.suffix.lower() in _ENDINGS


def open_picture(source: Path | bytes, name: str | None = None) -> "Image":
    """A picture whose head was read and whose pixels were not; PictureError says what is wrong, and where."""
    from PIL import Image, UnidentifiedImageError

    name = name or (str(source) if isinstance(source, Path) else "the picture")
    with _reading(name):
        data = source if isinstance(source, bytes) else _content(source)
        try:
            image = Image.open(io.BytesIO(data), formats=FORMATS)
        except UnidentifiedImageError:
            kinds = ", ".join(FORMATS)
            raise PictureError(f"{name} is no picture that can be read ({kinds})") from None
    width, height = image.size
    if width * height > MOST_PIXELS:
        raise PictureError(
            f"{name} would have {width:,} x {height:,} pixels; more than {MOST_PIXELS:,} are not read"
        )
    return image


def _content(path: Path) -> bytes:
    try:
        if not path.is_file():
            raise PictureError(
                f"{path} {'is a folder' if path.is_dir() else 'does not exist'}; give a picture"
            )
        if path.stat().st_size > MOST_PICTURE:
            raise PictureError(f"{path} has more than {MOST_PICTURE:,} bytes, which no picture should")
        return path.read_bytes()
    except OSError as error:
        raise PictureError(f"cannot open {path}: {error.strerror}") from error


@contextmanager
def _reading(name: str) -> Iterator[None]:
    """What Pillow says of broken files, as our one error: its decoders raise a dozen kinds."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # odd tags, and large pictures: those we measure ourselves
            yield
    except PictureError:
        raise
    except MemoryError as error:
        raise PictureError(f"{name} asks for more memory than there is") from error
    except Exception as error:
        reason = error_line(error)
        if type(error).__name__ == "DecompressionBombError":
            reason = f"more than {MOST_PIXELS:,} pixels are not read"
        raise PictureError(f"{name} cannot be read ({reason.removeprefix('OSError: ')})") from error


def flattened(image: "Image", name: str = "the picture") -> "Image":
    """The picture upright, in 8 bits, mode L where it has no colour and RGB where it may have."""
    with _reading(name):
        image.load()
        image = _upright(image)
        if image.mode in ("I", "F") or image.mode.startswith("I;"):
            return _eight_bits(image)
        if image.has_transparency_data:
            return _on_paper(image)
        if image.mode in ("L", "RGB"):
            return image
        return image.convert("L" if image.mode == "1" else "RGB")


def has_colour(image: "Image") -> bool:
    """Whether a picture may have colour, by its mode; a palette may."""
    return image.mode not in ("1", "L", "LA", "La", "I", "F") and not image.mode.startswith("I;")


def _upright(image: "Image") -> "Image":
    from PIL import ImageOps

    try:
        turned = ImageOps.exif_transpose(image)
    except Exception:  # a broken note about the picture is not a broken picture
        return image
    return turned or image


def _eight_bits(image: "Image") -> "Image":
    """Grey in more bits than 8: whole numbers of 16 bits, or of 0 to 1, or whatever range they fill."""
    from PIL import Image

    if image.mode.startswith("I;16"):
        deep = np.asarray(image).astype(np.uint32)
        return Image.fromarray(((deep + 128) // 257).astype(np.uint8))
    values: npt.NDArray[Any] = np.nan_to_num(np.asarray(image, dtype=np.float32))
    low, high = float(values.min(initial=0)), float(values.max(initial=0))
    if image.mode == "I" and low >= 0 and 255 < high <= 65535:
        values = values / 257
    elif image.mode == "F" and low >= 0 and high <= 1:
        values = values * 255
    elif low < 0 or high > 255:
        values = (values - low) * (255 / (high - low))
    return Image.fromarray(np.clip(values.round(), 0, 255).astype(np.uint8))


def _on_paper(image: "Image") -> "Image":
    from PIL import Image

    grey = image.mode in ("LA", "La", "L", "1")
    layered = image if image.mode == "RGBA" else image.convert("RGBA")
    paper = Image.new("RGBA", layered.size, (_PAPER, _PAPER, _PAPER, 255))
    paper.alpha_composite(layered)
    return paper.convert("L" if grey else "RGB")


def pixels(image: "Image", fit: Fit, name: str = "the picture") -> Pixels:
    """The picture (C, H, W) as `fit` wants it.

    >>> from PIL import Image
    >>> pixels(Image.new("1", (8, 4)), Fit(3, 5, channels=1)).shape
    (1, 3, 5)
    """
    _sketch(image, fit)
    flat = flattened(image, name)
    with _reading(name):
        mode = "L" if fit.channels == 1 else "RGB"
        flat = _fitted(flat if flat.mode == mode else flat.convert(mode), fit)
    values = np.asarray(flat)
    return np.ascontiguousarray(values[None] if values.ndim == 2 else values.transpose(2, 0, 1))


def _sketch(image: "Image", fit: Fit) -> None:
    """Let a JPEG that is much larger than what is wanted be decoded small, which is many times quicker."""
    if image.format == "JPEG" and min(image.size) > 4 * max(fit.height, fit.width):
        side = 2 * max(fit.height, fit.width)
        image.draft(image.mode, (side, side))


def _fitted(image: "Image", fit: Fit) -> "Image":
    from PIL import Image, ImageOps

    size = fit.width, fit.height
    if image.size == size:
        return image
    if fit.how == "pad":
        paper: Any = _PAPER if image.mode == "L" else (_PAPER,) * 3
        return ImageOps.pad(image, size, Image.Resampling.BICUBIC, color=paper)
    if fit.how == "stretch":
        return image.resize(size, Image.Resampling.BICUBIC)
    return ImageOps.fit(image, size, Image.Resampling.BICUBIC)
