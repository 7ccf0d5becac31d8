"""Pictures to labels, with probabilities; and how often they are right.

    next(regard.load("runs/animals").classify([Path("cat.jpg")]))       Label("cat", 0.98, ...)

Before this file: `regard.images`; after it: `regard classify`, the server.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import torch

from regard.config.image import ImageConfig
from regard.data.picture_files import Item
from regard.data.pictures import Lost, Pictures
from regard.errors import DataError
from regard.images.picture import PictureError, Pixels, open_picture, pixels
from regard.measure.labels import confusion, label_scores
from regard.tasks.pictures import Given, Seer, load_seer, unknown, whole
from regard.tasks.task import Evaluation, Judge


@dataclass(frozen=True)
class Label:
    """What a picture is, and how sure that is; `chances` has every label's probability, in their order."""

    name: str
    probability: float
    chances: tuple[float, ...]


class Classifier(Seer[Pixels]):
    """What pictures show."""

    task = "image"

    def read(self, given: Given) -> Pixels:
        """A picture (C, H, W) as the model wants it; PictureError where it is none."""
        path = Path(given) if isinstance(given, str) else given
        name = str(path) if isinstance(path, Path) else "the picture"
        return pixels(open_picture(path), self.made.fit, name)

    def classify(self, pictures: Given | Iterable[Given]) -> Iterator[Label]:
        """The label of each picture, in their order; PictureError for one that cannot be read."""
        return whole(self.try_all(pictures))

    def try_all(self, pictures: Given | Iterable[Given]) -> Iterator[Label | PictureError]:
        """The same, with the error in the place of a picture that cannot be read."""
        return self.in_turn(pictures, self.label)

    @torch.inference_mode()
    def label(self, pictures: Sequence[Pixels]) -> list[Label]:
        """Labels of pictures (C, H, W) that were read."""
        found: list[Label] = []
        for start in range(0, len(pictures), self.together):
            inputs = self.inputs(pictures[start : start + self.together])
            chances = self.model(inputs).float().softmax(-1).cpu()
            for row in chances.tolist():
                best = max(range(len(row)), key=row.__getitem__)
                found.append(Label(self.names[best], row[best], tuple(row)))
        return found

    def top(self, label: Label, count: int) -> list[tuple[str, float]]:
        """The likeliest labels with their probabilities."""
        pairs = zip(self.names, label.chances, strict=True)
        return sorted(pairs, key=lambda pair: -pair[1])[:count]

    def said(self, label: Label, count: int | None = None) -> dict[str, Any]:
        """A label with the probabilities of all, or of the likeliest, as --json and the server say it."""
        chances = dict(self.top(label, len(self.names) if count is None else count))
        return {"label": label.name, "probability": label.probability, "labels": chances}


def load_classifier(folder: Path, **options: Any) -> Classifier:
    """The model in a folder."""
    return load_seer(Classifier, folder, ImageConfig, **options)


def evaluation(classifier: Classifier, data: Pictures, limit: int | None = None) -> Evaluation:
    """Accuracy and macro F1; a label that the model does not know is always wrong.

    `limit` takes so many at most, from all over the data: those of a folder lie class by class.
    """
    wanted: list[str] = []
    given: list[str] = []
    lost = Lost()
    every = 1 if limit is None else max(1, math.ceil(sum(1 for _ in _labelled(data)) / limit))
    items = islice(_labelled(data), 0, None, every)
    while window := list(islice(items, classifier.together)):
        held: list[Pixels] = []
        for item in window:
            try:
                held.append(pixels(item.open(), classifier.made.fit, item.name))
            except PictureError as error:
                lost.add(error)
                continue
            wanted.append(item.label or "")
        given += [label.name for label in classifier.label(held)]
    if not wanted:
        raise DataError(f"{', '.join(map(str, data.paths))}: there is no picture with a label to measure on")
    names = sorted({*classifier.names, *wanted})
    number = {name: place for place, name in enumerate(names)}
    table = confusion([number[name] for name in wanted], [number[name] for name in given], len(names))
    more = {"pictures": len(wanted)} | ({"left_out": lost.count} if lost.count else {})
    notes = [lost.line(), unknown(wanted, classifier.names, "pictures")]
    return Evaluation(label_scores(table), more, notes=[*filter(None, notes)])


def judge(classifier: Classifier, data: Pictures, limit: int) -> Judge:
    """The same again and again: heads may be off."""
    count = evaluation(classifier, data, limit).more["pictures"]
    return Judge(classifier.model, lambda: evaluation(classifier, data, limit).scores, f"{count:,} pictures")


def _labelled(data: Pictures) -> Iterator[Item]:
    return (item for item in data.items() if item.label is not None)
