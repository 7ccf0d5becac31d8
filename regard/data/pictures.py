"""Pictures with their labels, as people keep them, to pixels on disk.

    DIR/cat/1.jpg DIR/dog/2.png     a folder a class; below DIR/train, DIR/valid, DIR/test if there are such
    DIR/1.jpg DIR/2.png             pictures without labels
    LIST.csv                        path,label a line, with a heading or without; paths from where it lies
    FILE.npz                        arrays `images` (N, H, W), (N, H, W, C) or (N, C, H, W), and `labels` (N,)
    DIR/train-images-idx3-ubyte     the files of MNIST, zipped or not; those of testing begin with t10k

Which it is, is found by looking (`picture_files.py`). What cannot be read is left out, counted, and the first
is named. Before this file: `regard.images.picture`; after it: the tasks that learn from pictures.
"""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from regard.data.columns import Chunk, Columns, Kind, open_columns
from regard.data.lines import open_file, reading
from regard.data.picture_files import Item, Source, sources
from regard.errors import DataError
from regard.images.picture import Fit, PictureError, has_colour, pixels

if TYPE_CHECKING:
    from PIL.Image import Image

CHUNK = 256  # pictures that are written at a time
NO_LABEL = -1


@dataclass
class Lost:
    """What could not be read: how many, and the first of them in words."""

    count: int = 0
    first: str = ""

    def add(self, what: object) -> None:
        """One more; `what` says which, and what is wrong with it."""
        self.count += 1
        self.first = self.first or str(what)

    def line(self, which: str = "that cannot be read") -> str:
        """For people; empty where nothing was lost."""
        return f"{self.count:,} left out {which}, the first: {self.first}" if self.count else ""


@dataclass
class Survey:
    """What was found by looking at the head of every picture."""

    labels: Counter[str] = field(default_factory=Counter)
    sizes: Counter[tuple[int, int]] = field(default_factory=Counter)  # (height, width)
    colour: bool = False
    count: int = 0
    lost: Lost = field(default_factory=Lost)  # pictures

    def add(self, open_: Callable[[], "Image"]) -> "Image | None":
        """One more picture, if it can be opened."""
        try:
            image = open_()
        except PictureError as error:
            self.lost.add(error)
            return None
        self.count += 1
        self.colour |= has_colour(image)
        self.sizes[image.height, image.width] += 1
        return image


@dataclass(frozen=True)
class Pictures:
    """Files and folders of pictures; they are looked through once, when they are first asked for.

    `part` is what is taken of a folder that holds several: train, valid or test.
    """

    paths: tuple[Path, ...]
    part: str = "train"

    @cached_property
    def sources(self) -> tuple[Source, ...]:
        """What holds the pictures."""
        return tuple(source for path in self.paths for source in sources(path, self.part))

    def items(self) -> Iterator[Item]:
        """Every picture, in their order; one that cannot be opened says so when it is."""
        for source in self.sources:
            yield from source.items()

    @cached_property
    def survey(self) -> Survey:
        """Labels, sizes and colour of all of them."""
        found = Survey()
        for item in self.items():
            if found.add(item.open) is not None and item.label is not None:
                found.labels[item.label] += 1
        if not found.count:
            reason = f"; {found.lost.line()}" if found.lost.count else ""
            raise DataError(f"{', '.join(map(str, self.paths))}: there is no picture to learn from{reason}")
        return found

    @property
    def labels(self) -> dict[str, int]:
        """Every label in the order of their names (numbers as numbers), with how often it is met."""
        return {name: self.survey.labels[name] for name in sorted(self.survey.labels, key=_in_order)}

    def fingerprint(self) -> str:
        """A hash of what is in the files and of their labels."""
        digest = hashlib.sha256()
        for source in self.sources:
            for path, label in source.files():
                digest.update(f"{label}\0".encode())
                with reading(str(path)), open_file(path, again=True) as handle:
                    digest.update(hashlib.file_digest(handle, "sha256").digest())
        return digest.hexdigest()

    def store(self, folder: Path, fit: Fit, labels: Sequence[str] = ()) -> Columns:
        """The pictures on disk: `pixels` (1, C, H, W) uint8 and `label` (1,) a picture.

        A label is its place in `labels`, -1 where it has none or none of these. The report has `lost`.
        """
        number = {label: place for place, label in enumerate(labels)}

        def chunks(report: dict[str, Any]) -> Iterator[Chunk]:
            lost, held, names = Lost(), [], []
            for item in self.items():
                try:
                    held.append(pixels(item.open(), fit, item.name)[None])
                except PictureError as error:
                    lost.add(error)
                    continue
                names.append([number.get(item.label or "", NO_LABEL) if labels else NO_LABEL])
                if len(held) == CHUNK:
                    yield {"pixels": held, "label": names}
                    held, names = [], []
            yield {"pixels": held, "label": names}
            report["lost"] = {"count": lost.count, "first": lost.first}

        kinds = {"pixels": Kind("<u1", fit.shape), "label": Kind("<i4")}
        inputs = [self.fingerprint(), list(fit.shape), fit.how, list(labels)]
        return open_columns(folder, inputs, kinds, chunks)


def _in_order(label: str) -> tuple[int, float, str]:
    try:
        return 0, float(label), label
    except ValueError:
        return 1, 0.0, label


def lost_in(store: Columns) -> str:
    """What a store left out, for people; empty where that is nothing."""
    return Lost(**store.report["lost"]).line()
