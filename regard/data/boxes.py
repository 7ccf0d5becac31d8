"""Pictures with boxes around what is in them, as people keep them, to pixels and boxes on disk.

    DIR/Annotations/*.xml + DIR/JPEGImages        Pascal VOC; parts in ImageSets/Main
    DIR/data.yaml + images/ + labels/*.txt        YOLO
    a .json with images, annotations, categories  COCO, in DIR, DIR/annotations or beside the pictures

Which it is, is found by looking (`box_files.py`). A box is kept as its corners in pixels. What reaches over
the edge is cut there; what has no area left, and pictures that are missing or cannot be read, are left out,
counted, and the first is named. Before this file: `regard.images.picture`; after it: the task `detection`.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from regard.data.box_files import Annotated, Boxes, annotated
from regard.data.columns import Chunk, Columns, Kind, open_columns
from regard.data.lines import open_file, reading
from regard.data.pictures import Lost, Survey
from regard.errors import DataError
from regard.images.picture import Fit, PictureError, open_picture, pixels

CHUNK = 64  # pictures that are written at a time
ASTRAY = "(annotations of pictures that are not there)"
LEAST = 1.0  # pixels that a box must have in each direction


@dataclass
class SceneSurvey(Survey):
    """And what was found by looking at every box."""

    boxes: int = 0
    most: int = 0  # boxes of one picture
    cut: Lost = field(default_factory=Lost)  # boxes without area


@dataclass(frozen=True)
class Scenes:
    """Folders of pictures with boxes; `part` is what is taken of a folder that holds several."""

    paths: tuple[Path, ...]
    part: str = "train"

    @cached_property
    def _read(self) -> tuple[tuple[Annotated, ...], Lost]:
        astray = Lost()
        return tuple(each for path in self.paths for each in annotated(path, self.part, astray)), astray

    @property
    def held(self) -> tuple[Annotated, ...]:
        """Every picture that is annotated, and what is in it."""
        return self._read[0]

    @property
    def astray(self) -> Lost:
        """Annotations of pictures that nothing else speaks of."""
        return self._read[1]

    @cached_property
    def survey(self) -> SceneSurvey:
        """Labels, sizes and colour of all of them, and their boxes."""
        found = SceneSurvey()
        for each in self.held:
            image = found.add(partial(open_picture, each.path))
            if image is None:
                continue
            boxes, labels = inside(each, image.height, image.width, found.cut)
            found.labels.update(labels)
            found.boxes += len(boxes)
            found.most = max(found.most, len(boxes))
        names = ", ".join(map(str, self.paths))
        if not found.count:
            reason = f"; {found.lost.line()}" if found.lost.count else ""
            raise DataError(f"{names}: there is no picture with boxes to learn from{reason}")
        if not found.boxes:
            reason = f"; {found.cut.line('(boxes)')}" if found.cut.count else ""
            raise DataError(f"{names}: there is no box in any of {found.count:,} pictures{reason}")
        return found

    @property
    def labels(self) -> dict[str, int]:
        """Every label in the order of their names, with how often it is met."""
        return dict(sorted(self.survey.labels.items()))

    def fingerprint(self) -> str:
        """A hash of the pictures and of what is said about them."""
        digest = hashlib.sha256()
        for each in self.held:
            digest.update(repr((each.boxes, each.labels)).encode())
            if each.path.is_file():
                with reading(str(each.path)), open_file(each.path, again=True) as handle:
                    digest.update(hashlib.file_digest(handle, "sha256").digest())
        return digest.hexdigest()

    def store(self, folder: Path, fit: Fit, labels: Sequence[str]) -> Columns:
        """On disk a picture: `pixels` (1, C, H, W), `box` (N, 4) corners as shares of its sides, `label` (N,)
        and its `size` (height, width) before; boxes of other labels are not kept. The report has `lost`.
        """
        number = {label: place for place, label in enumerate(labels)}

        def rows(lost: Lost) -> Iterator[dict[str, Any]]:
            for each in self.held:
                try:
                    image = open_picture(each.path)
                    height, width = image.height, image.width
                    values = pixels(image, fit, str(each.path))
                except PictureError as error:
                    lost.add(error)
                    continue
                boxes, names = inside(each, height, width, Lost())
                known = [place for place, name in enumerate(names) if name in number]
                shares = np.array(boxes, float).reshape(-1, 4)[known] / [width, height, width, height]
                yield {
                    "pixels": values[None],
                    "box": shares,
                    "label": [number[names[place]] for place in known],
                    "size": [height, width],
                }

        def chunks(report: dict[str, Any]) -> Iterator[Chunk]:
            lost, held = Lost(), []
            for row in rows(lost):
                held.append(row)
                if len(held) == CHUNK:
                    yield {name: [each[name] for each in held] for name in kinds}
                    held = []
            yield {name: [each[name] for each in held] for name in kinds}
            report["lost"] = {"count": lost.count, "first": lost.first}

        kinds = {
            "pixels": Kind("<u1", fit.shape),
            "box": Kind("<f4", (4,)),
            "label": Kind("<i4"),
            "size": Kind("<i4"),
        }
        inputs = [self.fingerprint(), list(fit.shape), fit.how, list(labels)]
        return open_columns(folder, inputs, kinds, chunks)


def inside(each: Annotated, height: int, width: int, cut: Lost) -> tuple[Boxes, list[str]]:
    """The boxes of a picture of that size, cut at its edges, with labels; those without area are counted."""
    boxes: Boxes = []
    names: list[str] = []
    for place, (box, name) in enumerate(zip(each.boxes, each.labels, strict=True)):
        scale = (width, height, width, height) if each.shares else (1, 1, 1, 1)
        left, top, right, bottom = (value * by for value, by in zip(box, scale, strict=True))
        held = max(0.0, left), max(0.0, top), min(float(width), right), min(float(height), bottom)
        if held[2] - held[0] < LEAST or held[3] - held[1] < LEAST:
            cut.add(
                PictureError(
                    f"{each.path}: box {place} ({name}) has no area in a picture of {width} x {height}"
                )
            )
            continue
        boxes.append(held)
        names.append(name)
    return boxes, names
