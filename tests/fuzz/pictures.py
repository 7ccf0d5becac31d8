"""Inputs for the readers of pictures and boxes: small ones of every format, and what ever broke one."""

import io
import json
import struct

import numpy as np
from PIL import Image

GREY = np.arange(35, dtype=np.uint8).reshape(5, 7) * 7


def files() -> list[bytes]:
    """A picture of each format and mode."""
    images = [
        (Image.fromarray(GREY), "PNG"),
        (Image.fromarray(GREY), "JPEG"),
        (Image.fromarray(GREY), "GIF"),
        (Image.fromarray(GREY), "BMP"),
        (Image.fromarray(GREY), "TIFF"),
        (Image.fromarray(GREY), "PPM"),
        (Image.fromarray(GREY), "WEBP"),
        (Image.fromarray(GREY.astype(np.uint16) * 257), "PNG"),
        (Image.fromarray(GREY).convert("RGBA"), "PNG"),
        (Image.fromarray(GREY).convert("P"), "PNG"),
        (Image.fromarray(GREY).convert("CMYK"), "JPEG"),
    ]
    return [_saved(image, form) for image, form in images]


def _saved(image: Image.Image, form: str) -> bytes:
    held = io.BytesIO()
    image.save(held, form)
    return held.getvalue()


def lists() -> list[bytes]:
    """Paths and labels."""
    return [b"path,label\na.png,cat\n", b'"a, b.png",dog\n../x,1\n', b"", b"a", b'"\n']


def archives() -> list[bytes]:
    """Arrays of pictures."""
    found = []
    for images in (GREY[None], GREY[None, :, :, None] / 255.0):
        held = io.BytesIO()
        np.savez(held, images=images, labels=np.array(["a"]))
        found.append(held.getvalue())
    return found


def idx() -> list[bytes]:
    """MNIST's layout, and heads that claim more than there is."""
    whole = struct.pack(">4i", 0x803, 1, 5, 7) + GREY.tobytes()
    return [whole, struct.pack(">4i", 0x803, 2**24, 8192, 8192), struct.pack(">4i", 0x803, -1, 5, 7)]


def coco() -> list[bytes]:
    """A COCO json."""
    tree = {
        "images": [{"id": 1, "file_name": "a.png"}],
        "annotations": [{"image_id": 1, "category_id": 2, "bbox": [1, 2, 3, 4]}],
        "categories": [{"id": 2, "name": "cat"}],
    }
    return [json.dumps(tree).encode(), b"{}", b"[]"]


def yolo() -> list[bytes]:
    """What names the classes of a YOLO folder."""
    return [b"names: [cat, dog]\ntrain: images", b"names:\n  0: cat\n", b"a: &a [*a]", b"names: 3"]


def voc() -> list[bytes]:
    """An annotation of Pascal VOC."""
    box = "<xmin>1</xmin><ymin>2</ymin><xmax>3</xmax><ymax>4</ymax>"
    return [
        f"<annotation><object><name>cat</name><bndbox>{box}</bndbox></object></annotation>".encode(),
        b"<a/>",
    ]
