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

from regard.config import Config
from regard.config.detection import DetectionConfig
from regard.data.boxes import Scenes, inside
from regard.data.pictures import Lost
from regard.errors import DataError, ModelError
from regard.foreign import loads
from regard.images.picture import PictureError, open_picture, pixels
from regard.images.preprocessing import PREPROCESSING, Preprocessing
from regard.layers.boxes import corners
from regard.measure.boxes import Objects, box_scores
from regard.models.folder import load_folder
from regard.tasks.task import Evaluation

LABELS = "labels.json"
BATCH = 8  # pictures that go through the model together
MOST = 100  # objects of a picture that AP counts
Given = Path | str | bytes


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


class Detector:
    """A model with its preprocessing and the names of its classes; `regard.load` makes one from a folder."""

    task = "detection"

    def __init__(self, config: Config, model: Any, made: Preprocessing, names: Sequence[str]) -> None:
        self.config, self.model, self.made, self.names = config, model.eval(), made, list(names)
        self.device = next(model.parameters()).device

    def detect(self, pictures: Iterable[Given], threshold: float = 0.5) -> Iterator[Seen]:
        """What is in each picture, in their order; PictureError for one that cannot be read."""
        for found in self.try_all(pictures, threshold):
            if isinstance(found, PictureError):
                raise found
            yield found

    def try_all(self, pictures: Iterable[Given], threshold: float = 0.5) -> Iterator[Seen | PictureError]:
        """The same, with the error in the place of a picture that cannot be read."""
        left = iter(pictures)
        while window := list(islice(left, BATCH)):
            read = [self._tried(given) for given in window]
            good = [each for each in read if not isinstance(each, PictureError)]
            found = iter(self.find([each for each, _ in good], [size for _, size in good]))
            for each in read:
                if isinstance(each, PictureError):
                    yield each
                else:
                    yield self.seen(next(found), each[1], threshold)

    def _tried(self, given: Given) -> tuple[Any, tuple[int, int]] | PictureError:
        path = Path(given) if isinstance(given, str) else given
        name = str(path) if isinstance(path, Path) else "the picture"
        try:
            return read_upright(path, name, self.made)
        except PictureError as error:
            return error

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
        inputs = torch.stack([torch.from_numpy(self.made.normalised(each)) for each in pictures])
        out = self.model(inputs.to(self.device))
        return objects_of(out.classes[-1], out.boxes[-1], sizes)


def read_upright(source: Path | bytes, name: str, made: Preprocessing) -> tuple[Any, tuple[int, int]]:
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
    loaded = load_folder(folder, **options)
    held = loaded.config.of(DetectionConfig)
    try:
        made = Preprocessing.from_json(loaded.files[PREPROCESSING], str(folder))
        names = loads(loaded.files[LABELS])
    except (KeyError, ValueError) as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"{folder} has no {PREPROCESSING} or no {LABELS}; copy the folder again") from error
    if made.fit.shape != (held.channels, held.height, held.width):
        raise ModelError(
            f"{folder}: {PREPROCESSING} and the config disagree about sizes; copy the folder again"
        )
    if (
        not isinstance(names, list)
        or len(names) != held.classes
        or not all(isinstance(n, str) for n in names)
    ):
        raise ModelError(f"{folder / LABELS} must name {held.classes} classes; copy the folder again")
    return Detector(loaded.config, loaded.model, made, names)


def evaluation(detector: Detector, data: Scenes) -> Evaluation:
    """AP, AP50 and AP75; a label that the model does not know is never found."""
    names = [*detector.names, *(name for name in data.labels if name not in detector.names)]
    number = {name: place for place, name in enumerate(names)}
    true: list[Objects] = []
    found: list[Objects] = []
    lost = Lost()
    held = iter(data.held)
    while window := list(islice(held, BATCH)):
        read = []
        for each in window:
            try:
                values, size = read_upright(each.path, str(each.path), detector.made)
            except PictureError as error:
                lost.add(error)
                continue
            boxes, labels = inside(each, *size, Lost())
            read.append((values, size))
            true.append(
                Objects(np.array(boxes).reshape(-1, 4), np.array([number[name] for name in labels], int))
            )
        found += detector.find([values for values, _ in read], [size for _, size in read])
    if not true:
        raise DataError(f"{', '.join(map(str, data.paths))}: there is no picture to measure on")
    more = {"pictures": len(true), "boxes": sum(len(each.boxes) for each in true)}
    return Evaluation(
        box_scores(true, found, len(names)), more | ({"left_out": lost.count} if lost.count else {})
    )
