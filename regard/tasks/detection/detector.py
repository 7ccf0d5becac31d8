"""Pictures to boxes: what is in them, where, and how sure that is; and how good that is.

    next(regard.load("runs/cells").detect([Path("blood.jpg")], threshold=0.5)).objects

No two boxes are weighed against each other afterwards: the queries have seen each other. Before this file:
`regard.images`; after it: `regard detect`, the server.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.config.detection import DetectionConfig
from regard.data.boxes import ASTRAY, Scenes, inside
from regard.data.pictures import Lost
from regard.errors import DataError
from regard.images.picture import PictureError, Pixels, open_picture, pixels
from regard.images.preprocessing import Preprocessing
from regard.layers.boxes import corners
from regard.measure.boxes import Objects, box_scores
from regard.tasks.pictures import Given, Seer, load_seer, unknown, whole
from regard.tasks.task import Evaluation, Judge

MOST = 100  # objects of a picture that AP counts


@dataclass(frozen=True)
class Object:
    """A thing in a picture: what it is, how sure that is, and left, top, right and bottom in pixels."""

    name: str
    score: float
    box: tuple[float, float, float, float]

    def said(self) -> dict[str, Any]:
        """As the server says it: a box is left, top, width and height."""
        left, top, right, bottom = self.box
        return {"label": self.name, "score": self.score, "box": [left, top, right - left, bottom - top]}


@dataclass(frozen=True)
class Seen:
    """A picture's size, and what is in it, the surest first."""

    height: int
    width: int
    objects: tuple[Object, ...]


Upright = tuple[Pixels, tuple[int, int]]  # a picture as the model wants it, and its own height and width


class Detector(Seer[Upright]):
    """What is in pictures, and where."""

    task = "detection"
    together = 8

    def read(self, given: Given) -> Upright:
        """A picture (C, H, W) as the model wants it, with its own height and width."""
        path = Path(given) if isinstance(given, str) else given
        return read_upright(path, str(path) if isinstance(path, Path) else "the picture", self.made)

    def detect(self, pictures: Given | Iterable[Given], threshold: float = 0.5) -> Iterator[Seen]:
        """What is in each picture, in their order; PictureError for one that cannot be read."""
        return whole(self.try_all(pictures, threshold))

    def try_all(
        self, pictures: Given | Iterable[Given], threshold: float = 0.5
    ) -> Iterator[Seen | PictureError]:
        """The same, with the error in the place of a picture that cannot be read."""

        def say(read: list[Upright]) -> list[Seen]:
            sizes = [size for _, size in read]
            found = self.find([each for each, _ in read], sizes)
            return [self.seen(each, size, threshold) for each, size in zip(found, sizes, strict=True)]

        return self.in_turn(pictures, say)

    def seen(self, found: Objects, size: tuple[int, int], threshold: float) -> Seen:
        """What is sure enough of what was found in a picture of that size."""
        assert found.scores is not None
        objects = [
            Object(self.names[int(label)], float(score), (float(a), float(b), float(c), float(d)))
            for (a, b, c, d), label, score in zip(found.boxes, found.labels, found.scores, strict=True)
            if score >= threshold
        ]
        return Seen(*size, tuple(objects))

    @torch.inference_mode()
    def find(self, pictures: Sequence[Any], sizes: Sequence[tuple[int, int]]) -> list[Objects]:
        """Every query's object of pictures (C, H, W) that were read; `sizes` (height, width) before."""
        if not pictures:
            return []
        out = self.model(self.inputs(pictures))
        return objects_of(out.classes[-1], out.boxes[-1], sizes)


def read_upright(source: Path | bytes, name: str, made: Preprocessing) -> Upright:
    """A picture (C, H, W) as the model wants it, and its own height and width, once it is upright."""
    image = open_picture(source, name)
    turned = image.getexif().get(0x0112, 1) in (5, 6, 7, 8)
    size = (image.width, image.height) if turned else (image.height, image.width)
    return pixels(image, made.fit, name), size


def objects_of(classes: Tensor, boxes: Tensor, sizes: Sequence[tuple[int, int]]) -> list[Objects]:
    """What queries (B, Q, L + 1) and (B, Q, 4) say, in pixels of pictures of these sizes, surest first."""
    chances, labels = classes.float().softmax(-1)[..., :-1].max(-1)
    order = chances.argsort(-1, descending=True)[:, :MOST]
    places = corners(boxes.float()).clamp(0, 1)
    found = []
    for row, (height, width) in enumerate(sizes):
        best = order[row]
        scale = np.array([width, height, width, height])
        found.append(
            Objects(
                places[row, best].cpu().numpy() * scale,
                labels[row, best].cpu().numpy(),
                chances[row, best].cpu().numpy(),
            )
        )
    return found


def load_detector(folder: Path, **options: Any) -> Detector:
    """The model in a folder."""
    return load_seer(Detector, folder, DetectionConfig, **options)


def evaluation(detector: Detector, data: Scenes, limit: int | None = None) -> Evaluation:
    """AP, AP50 and AP75; a label that the model does not know is never found. `limit`: pictures at most."""
    names = [*detector.names, *(name for name in data.labels if name not in detector.names)]
    number = {name: place for place, name in enumerate(names)}
    true: list[Objects] = []
    found: list[Objects] = []
    lost, flat = Lost(), Lost()
    held = islice(data.held, limit)
    while window := list(islice(held, detector.together)):
        read = []
        for each in window:
            try:
                values, size = read_upright(each.path, str(each.path), detector.made)
            except PictureError as error:
                lost.add(error)
                continue
            boxes, labels = inside(each, *size, flat)
            read.append((values, size))
            true.append(
                Objects(np.array(boxes).reshape(-1, 4), np.array([number[name] for name in labels], int))
            )
        found += detector.find([values for values, _ in read], [size for _, size in read])
    if not true:
        raise DataError(f"{', '.join(map(str, data.paths))}: there is no picture to measure on")
    more = {"pictures": len(true), "boxes": sum(len(each.boxes) for each in true)}
    more |= {"left_out": lost.count} if lost.count else {}
    strange = unknown((names[label] for each in true for label in each.labels), detector.names, "boxes")
    notes = [lost.line(), flat.line("without area"), data.astray.line(ASTRAY), strange]
    return Evaluation(box_scores(true, found, len(names)), more, notes=[*filter(None, notes)])


def judge(detector: Detector, data: Scenes, limit: int) -> Judge:
    """The same on the first `limit` pictures, again and again: heads may be off."""
    count = min(limit, len(data.held))
    return Judge(detector.model, lambda: evaluation(detector, data, limit).scores, f"{count:,} pictures")
