"""How pictures and labels lie in files: looked at, not asked for. `pictures.py` lists the layouts.

A source gives its pictures one by one, and the files that it reads. Arrays are read some at a time, so that
no file has to fit into memory.
"""

import gzip
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from regard.data.lines import cells_of, decode, is_gzip, open_file, read_lines, reading
from regard.data.texts import files_of
from regard.errors import DataError, RegardError, shown
from regard.foreign import MOST_PICTURES, MOST_PIXELS
from regard.images.picture import PictureError, named_as_picture, open_picture

if TYPE_CHECKING:
    from PIL.Image import Image

PARTS = {"train": ("train",), "valid": ("valid", "val", "validation"), "test": ("test",)}
_OTHER = {"test": "valid", "valid": "test", "train": ""}  # what is taken where a part is not there
_HEADING = ("path", "file", "filename", "file_name", "image", "picture")
_LABELS = ("label", "class", "category", "target")  # what the other column is called where both are named
_IDX_IMAGES, _IDX_LABELS = 0x803, 0x801  # bytes in three dimensions, and in one
_IDX = {"train": "train", "valid": "t10k", "test": "t10k"}
_BLOCK = 2**22  # bytes of an array that are held at a time


class Item(NamedTuple):
    """A picture that can be opened, what it is called, and its label if it has one."""

    name: str
    label: str | None
    open: Callable[[], "Image"]


class Source(Protocol):
    """Some pictures."""

    def items(self) -> Iterator[Item]:
        """Every one of them."""
        ...

    def files(self) -> Iterator[tuple[Path, str]]:
        """What they lie in, each with what else its content means."""
        ...


def sources(path: Path, part: str = "train") -> Iterator[Source]:
    """What holds the pictures of a file or a folder; of a folder in parts, those of `part`."""
    if path.is_dir():
        yield from _in_folder(_part_of(path, part), part)
    elif path.suffix == ".npz":
        yield Archive(path)
    elif path.suffix in (".csv", ".tsv"):
        yield Listed(path)
    elif "images-idx3" in path.name:
        yield Idx(path)
    elif path.exists() and not named_as_picture(path):
        raise DataError(f"{path}: pictures come in a folder a class, a .csv of path,label, or an .npz")
    else:
        open_file(path, again=True).close()  # says that it does not exist
        yield Files(((path, None),))


def _part_of(folder: Path, part: str) -> Path:
    """The folder below it that holds the part, or the folder itself."""
    if not any((folder / name).is_dir() for name in PARTS["train"]):
        return folder
    for wanted in (part, _OTHER[part]):
        for name in PARTS.get(wanted, ()):
            if (folder / name).is_dir():
                return folder / name
    return folder / "train"


def _in_folder(folder: Path, part: str) -> Iterator[Source]:
    idx = sorted(folder.glob("*-images-idx3-ubyte*"))
    chosen = [path for path in idx if path.name.startswith(_IDX[part])] or idx[:1]
    if chosen:
        yield Idx(chosen[0])
        return
    classes = [each for each in sorted(folder.iterdir()) if each.is_dir() and not each.name.startswith(".")]
    labelled = tuple((file, each.name) for each in classes for file in files_of(each))
    flat = tuple(
        (file, None) for file in sorted(folder.iterdir()) if file.is_file() and named_as_picture(file)
    )
    if flat and any(named_as_picture(file) for file, _ in labelled):
        raise DataError(
            f"{folder} holds pictures beside folders of pictures ({flat[0][0].name}): which label has it?"
        )
    yield Files(labelled or flat)


@dataclass(frozen=True)
class Files:
    """A file a picture."""

    held: tuple[tuple[Path, str | None], ...]

    def items(self) -> Iterator[Item]:
        for path, label in self.held:
            yield Item(str(path), label, partial(open_picture, path))

    def files(self) -> Iterator[tuple[Path, str]]:
        yield from ((path, label or "") for path, label in self.held)


@dataclass(frozen=True)
class Listed:
    """A CSV or TSV of path and label."""

    path: Path

    def rows(self) -> Iterator[tuple[Path, str]]:
        """Each picture and its label."""
        where, width = (0, 1), 2
        for number, raw in enumerate(read_lines(self.path), 1):
            text = decode(raw, self.path, number)
            if not text.strip():
                continue
            delimiter = "\t" if self.path.suffix == ".tsv" else ","
            cells = [cell.strip() for cell in cells_of(text, self.path, number, delimiter)]
            if number == 1 and (found := _columns(cells)):
                where, width = found, len(cells)
                continue
            if len(cells) != width:
                held = f"{len(cells)} column{'s' if len(cells) != 1 else ''}"
                raise DataError(f"{self.path} line {number}: {held} where there are {width} (path, label)")
            if not all(cells[place] for place in where):
                empty = "label" if cells[where[0]] else "path"
                raise DataError(f"{self.path} line {number}: the {empty} is missing")
            yield self.path.parent / cells[where[0]], cells[where[1]]

    def items(self) -> Iterator[Item]:
        for path, label in self.rows():
            yield Item(str(path), label, partial(open_picture, path))

    def files(self) -> Iterator[tuple[Path, str]]:
        yield self.path, ""
        yield from ((path, label) for path, label in self.rows() if path.is_file())


def _columns(cells: list[str]) -> tuple[int, int] | None:
    """Where path and label stand, if these are names of columns."""
    names = [cell.lower() for cell in cells]
    paths = [names.index(name) for name in _HEADING if name in names]
    labels = [names.index(name) for name in _LABELS if name in names]
    if paths and labels:
        return paths[0], labels[0]
    return (0, 1) if len(cells) == 2 and names[0] in _HEADING else None


class _Rows:
    """An array whose first axis are pictures, or labels, read row by row from a stream of bytes."""

    def __init__(self, stream: Any, name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
        self.stream, self.name, self.dtype, self.shape = stream, name, dtype, shape
        pixels = int(np.prod(shape[1:], dtype=object))
        if not shape or shape[0] > MOST_PICTURES or pixels > 4 * MOST_PIXELS:
            raise DataError(f"{name}: an array of shape {shape} is more than is read")
        if dtype.hasobject or dtype.kind not in "biufUS":
            raise DataError(f"{name}: an array of {dtype} holds no plain numbers or words")
        self.bytes = pixels * dtype.itemsize

    def __iter__(self) -> Iterator[npt.NDArray[Any]]:
        left, some = self.shape[0], max(1, _BLOCK // max(1, self.bytes))
        while left:
            count = min(left, some)
            data = self.stream.read(count * self.bytes)
            if len(data) < count * self.bytes:
                raise DataError(
                    f"{self.name} ends {left - len(data) // self.bytes} rows early; make it again"
                )
            yield from np.frombuffer(data, self.dtype).reshape(count, *self.shape[1:])
            left -= count


@dataclass(frozen=True)
class Archive:
    """An .npz of `images` and, if it has them, `labels`."""

    path: Path

    def items(self) -> Iterator[Item]:
        with ExitStack() as stack, _unzipping(self.path):
            images = self._rows(stack, "images")
            labels = self._rows(stack, "labels")
            if images is None:
                raise DataError(f"{self.path} has no array `images`; it needs `images` and `labels`")
            yield from _paired(self.path, images, labels)

    def _rows(self, stack: ExitStack, name: str) -> _Rows | None:
        archive = stack.enter_context(zipfile.ZipFile(self.path))
        if f"{name}.npy" not in archive.namelist():
            return None
        stream = stack.enter_context(archive.open(f"{name}.npy"))
        version = np.lib.format.read_magic(stream)
        read = (
            np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        )
        shape, fortran, dtype = read(stream)
        if fortran and len(shape) > 1:
            raise DataError(f"{self.path}: `{name}` lies in Fortran's order; save np.ascontiguousarray of it")
        return _Rows(stream, f"{self.path} `{name}`", dtype, shape)

    def files(self) -> Iterator[tuple[Path, str]]:
        yield self.path, ""


@contextmanager
def _unzipping(path: Path) -> Iterator[None]:
    open_file(path, again=True).close()
    try:
        yield
    except RegardError:
        raise
    except Exception as error:  # zipfile and numpy raise a dozen kinds for broken bytes
        reason = shown(str(error).partition("\n")[0])
        raise DataError(f"{path} is no .npz that can be read ({reason}); make it again") from error


@dataclass(frozen=True)
class Idx:
    """The two files of a part of MNIST, or of a set like it."""

    path: Path

    def items(self) -> Iterator[Item]:
        with ExitStack() as stack:
            images = self._rows(stack, self.path, _IDX_IMAGES)
            beside = self._labels()
            labels = self._rows(stack, beside, _IDX_LABELS) if beside else None
            yield from _paired(self.path, images, labels)

    def _labels(self) -> Path | None:
        name = self.path.name.replace("images-idx3", "labels-idx1")
        found = [self.path.with_name(each) for each in (name, name.removesuffix(".gz"), f"{name}.gz")]
        return next((path for path in found if path.is_file()), None)

    def _rows(self, stack: ExitStack, path: Path, kind: int) -> _Rows:
        stack.enter_context(reading(str(path)))
        handle = stack.enter_context(open_file(path, again=True))
        stream = stack.enter_context(gzip.GzipFile(fileobj=handle)) if is_gzip(handle) else handle
        dimensions = kind & 0xFF
        data = stream.read(4 * (1 + dimensions))
        head = np.frombuffer(data[: len(data) // 4 * 4], ">i4")
        if len(head) != 1 + dimensions or head[0] != kind or (head[1:] < 1).any():
            raise DataError(f"{path} is no idx file of {dimensions} dimensions; copy it again")
        return _Rows(stream, str(path), np.dtype("u1"), tuple(map(int, head[1:])))

    def files(self) -> Iterator[tuple[Path, str]]:
        beside = self._labels()
        yield from ((path, "") for path in (self.path, beside) if path is not None)


def _paired(path: Path, images: _Rows, labels: _Rows | None) -> Iterator[Item]:
    """Pictures and labels of two arrays."""
    if len(images.shape) not in (3, 4):
        raise DataError(f"{path}: images have shape {images.shape}; it should be (N, H, W) or (N, H, W, C)")
    if labels is not None and labels.shape != images.shape[:1]:
        raise DataError(f"{path}: {images.shape[0]} images and labels of shape {labels.shape}")
    names = iter(labels) if labels is not None else None
    for number, values in enumerate(images):
        name = f"{path} picture {number}"
        label = None if names is None else _word(next(names))
        yield Item(name, label, partial(_as_image, values, name))


def _word(value: Any) -> str:
    """A label of an array: words as they are, whole numbers without a point."""
    one = value.item()
    if isinstance(one, bytes):
        return one.decode("utf-8", "replace")
    return str(int(one)) if isinstance(one, bool | float) and one == int(one) else str(one)


def _as_image(values: npt.NDArray[Any], name: str) -> "Image":
    """A picture of an array (H, W), (H, W, C) or (C, H, W)."""
    from PIL import Image

    if values.ndim == 3 and values.shape[0] in (1, 3, 4) and values.shape[2] not in (1, 3, 4):
        values = values.transpose(1, 2, 0)
    if values.ndim == 3 and values.shape[2] == 1:
        values = values[..., 0]
    try:
        return Image.fromarray(np.ascontiguousarray(_bytes(values)))
    except (TypeError, ValueError) as error:
        raise PictureError(f"{name} has shape {values.shape}, which is no picture") from error


def _bytes(values: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    """Numbers as 0 to 255: floats of 0 to 1 and whole numbers of 16 bits are stretched, others cut off."""
    if values.dtype == np.uint8:
        return values
    scale = 1.0
    if values.dtype.kind == "b" or (values.dtype.kind == "f" and np.nanmax(values, initial=0) <= 1):
        scale = 255.0
    elif values.dtype == np.uint16:
        scale = 1 / 257
    scaled = np.nan_to_num(values.astype(np.float64)) * scale
    return np.clip(scaled.round(), 0, 255).astype(np.uint8)
