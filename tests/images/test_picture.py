"""Pictures as files have them: every mode becomes plain pixels, and what is none is one line."""

import io
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from regard.config.image import FITS
from regard.errors import UsageError
from regard.foreign import MOST_PIXELS
from regard.images.picture import Fit, PictureError, flattened, has_colour, open_picture, pixels

RAMP = np.arange(35, dtype=np.uint8).reshape(5, 7) * 7  # 5 rows, 7 columns


def saved(image: Image.Image, form: str = "PNG", **options: object) -> bytes:
    held = io.BytesIO()
    image.save(held, form, **options)
    return held.getvalue()


def reopened(image: Image.Image, form: str = "PNG", **options: object) -> np.ndarray:
    return np.asarray(flattened(open_picture(saved(image, form, **options))))


@pytest.mark.parametrize("form", ["PNG", "BMP", "TIFF", "PPM"])
def test_grey_is_kept_as_it_is(form: str) -> None:
    assert (reopened(Image.fromarray(RAMP), form) == RAMP).all()


def test_colour_is_kept_as_it_is() -> None:
    colours = np.random.default_rng(1).integers(0, 256, (5, 7, 3), dtype=np.uint8)
    assert (reopened(Image.fromarray(colours)) == colours).all()
    assert pixels(Image.fromarray(colours), Fit(5, 7)).tolist() == colours.transpose(2, 0, 1).tolist()


def test_sixteen_bits_become_eight() -> None:
    deep = RAMP.astype(np.uint16) * 257
    assert (reopened(Image.fromarray(deep)) == RAMP).all()
    assert (reopened(Image.fromarray(deep), "TIFF") == RAMP).all()
    assert (np.asarray(flattened(Image.fromarray(deep.astype(np.int32)))) == RAMP).all()
    assert (np.asarray(flattened(Image.fromarray((RAMP / 255).astype(np.float32)))) == RAMP).all()
    spread = np.asarray(flattened(Image.fromarray(RAMP.astype(np.float32) * 9 - 500)))
    assert spread.min() == 0
    assert spread.max() == 255


def test_what_is_transparent_lies_on_white() -> None:
    layered = np.zeros((2, 3, 4), np.uint8)
    layered[0, 0] = (10, 20, 30, 255)
    layered[1, 1] = (0, 0, 0, 128)
    found = reopened(Image.fromarray(layered))
    assert found[0, 0].tolist() == [10, 20, 30]
    assert found[0, 1].tolist() == [255, 255, 255]
    assert abs(int(found[1, 1, 0]) - 127) <= 1
    grey = Image.fromarray(layered).convert("LA")
    assert reopened(grey).shape == (2, 3)
    palette = Image.new("P", (2, 1))
    palette.putpalette([0, 0, 0, 200, 100, 50])
    palette.putdata([0, 1])
    assert reopened(palette, transparency=0).tolist() == [[[255, 255, 255], [200, 100, 50]]]
    assert reopened(palette).tolist() == [[[0, 0, 0], [200, 100, 50]]]


@pytest.mark.parametrize(("turn", "back"), [(3, 2), (6, 1), (8, 3)])
def test_a_picture_that_was_held_askew_is_turned(turn: int, back: int) -> None:
    exif = Image.Exif()
    exif[0x0112] = turn
    assert (reopened(Image.fromarray(RAMP), exif=exif) == np.rot90(RAMP, -back if back != 2 else 2)).all()


def test_a_broken_note_is_no_broken_picture() -> None:
    held = saved(Image.fromarray(RAMP), exif=b"Exif\0\0MM\0*\0\0\0\x08\xff\xff")
    assert np.asarray(flattened(open_picture(held))).shape == (5, 7)


@pytest.mark.parametrize("mode", ["CMYK", "YCbCr", "LAB", "HSV", "1"])
def test_other_modes_become_plain(mode: str) -> None:
    image = Image.fromarray(np.stack([RAMP] * 3, -1))
    image = image.convert("RGB").convert(mode) if mode != "LAB" else Image.new("LAB", (7, 5))
    assert flattened(image).mode == ("L" if mode == "1" else "RGB")


def test_the_mode_tells_of_colour() -> None:
    modes = ("1", "L", "LA", "I;16", "I", "F", "P", "RGB", "RGBA", "CMYK")
    assert [mode for mode in modes if has_colour(Image.new(mode, (1, 1)))] == ["P", "RGB", "RGBA", "CMYK"]


@settings(max_examples=40)
@given(st.integers(1, 23), st.integers(1, 23), st.sampled_from(FITS), st.sampled_from([1, 3]))
def test_any_shape_is_fitted(width: int, height: int, how: str, channels: int) -> None:
    found = pixels(Image.new("RGB", (width, height), (9, 9, 9)), Fit(5, 7, channels, how))
    assert found.shape == (channels, 5, 7)
    assert found.dtype == np.uint8
    assert set(np.unique(found)) <= ({9, 255} if how == "pad" else {9})


def test_an_unknown_fit_is_refused() -> None:
    with pytest.raises(UsageError, match="must be one of crop, pad, stretch"):
        Fit(2, 2, how="fold")


def test_a_large_jpeg_is_decoded_small_and_looks_the_same() -> None:
    photo = Image.fromarray(np.linspace(0, 255, 640 * 480).reshape(480, 640).astype(np.uint8))
    held = saved(photo, "JPEG", quality=95)
    small = pixels(open_picture(held), Fit(31, 31, 1))
    whole = pixels(photo, Fit(31, 31, 1))
    assert np.abs(small.astype(int) - whole).max() < 9


def claimed(width: int, height: int) -> bytes:
    """A PNG whose head claims so many pixels."""
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = [(b"IHDR", head), (b"IDAT", zlib.compress(b"\0" * 64)), (b"IEND", b"")]
    chunks = (
        struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        for name, data in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "no picture that can be read"),
        (b"hello, world" * 9, "no picture that can be read"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n", "no picture that can be read"),
        (saved(Image.fromarray(np.kron(RAMP, np.ones((40, 40), np.uint8))), "JPEG")[:-600], "truncated"),
        (saved(Image.fromarray(RAMP))[:48], "cannot be read"),
        (claimed(9000, 9000), f"more than {MOST_PIXELS:,} are not read"),
        (claimed(2**31 - 1, 2**31 - 1), "pixels are not read|are not read"),
        (claimed(30, 30), "cannot be read"),
    ],
    ids=["empty", "text", "postscript", "truncated jpeg", "truncated png", "bomb", "huge bomb", "short"],
)
def test_what_is_no_picture_is_one_line(data: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "held.png"
    path.write_bytes(data)
    with pytest.raises(PictureError, match=words) as caught:
        flattened(open_picture(path), str(path))
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_a_folder_and_nothing_are_no_pictures(tmp_path: Path) -> None:
    with pytest.raises(PictureError, match="is a folder"):
        open_picture(tmp_path)
    with pytest.raises(PictureError, match="does not exist"):
        open_picture(tmp_path / "gone.png")
