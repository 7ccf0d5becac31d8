"""From pictures with boxes to a lesson: sizes that follow from them, pixels on disk, set loss, AP.

Called by the task (`__init__.py`). Before this file: `regard.data.boxes`; after it: `regard.training.run`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.config import Config, TrainConfig, merge
from regard.config.detection import DetectionConfig
from regard.data.boxes import ASTRAY, Scenes
from regard.data.columns import Columns
from regard.data.pictures import lost_in
from regard.images.picture import Fit
from regard.images.preprocessing import PREPROCESSING, Preprocessing
from regard.layers.boxes import centred
from regard.layers.efficientnet import MEAN, SPREAD
from regard.measure.boxes import Objects, box_scores
from regard.models.card import escape
from regard.models.detector import grid_of
from regard.tasks.detection.augment import varied
from regard.tasks.detection.denoise import hint_loss, spoil, without_hints
from regard.tasks.detection.detector import objects_of
from regard.tasks.detection.matching import set_loss
from regard.tasks.image.augment import mirror_is_right
from regard.tasks.image.lesson import normalised
from regard.tasks.pictures import LABELS, Parts
from regard.training.feed import Rows, StoreFeed, spread
from regard.training.lesson import Job, Lesson
from regard.training.objective import ALL, Group, Limit, Loss, Measurement, Objective, shared, undisturbed

HELD_OUT, HELD_OUT_SHARE = 200, 10  # pictures at most, and one in so many
LARGEST = 320  # pixels of the longer side
SMALL = 160  # up to which a patch has 8 pixels
SPARE = 3  # queries for each object of the fullest picture
_CROP = 16  # side of what is in a box, as mirroring is tried on it
BATCH = 16
TRAINED = 0.1  # of the rate, for a backbone that was trained before


class Boxed(Parts[Scenes]):
    """Pictures with boxes."""


@dataclass(frozen=True)
class SceneBatch:
    """Pictures (B, C, H, W) uint8; of each its boxes (N, 4), centre and size, and their classes (N,)."""

    pixels: Tensor
    boxes: list[Tensor]
    labels: list[Tensor]

    @property
    def targets(self) -> int:
        """Boxes."""
        return max(1, sum(map(len, self.labels)))

    def to(self, device: torch.device | str) -> "SceneBatch":
        """The same on a device."""
        boxes, labels = ([each.to(device) for each in held] for held in (self.boxes, self.labels))
        return SceneBatch(self.pixels.to(device), boxes, labels)


def collate(store: Columns, rows: Rows) -> SceneBatch:
    """Some rows as one batch."""
    boxes = [centred(torch.from_numpy(np.array(store["box"].row(int(row))))) for row in rows]
    labels = [torch.from_numpy(store["label"].row(int(row)).astype(np.int64)) for row in rows]
    return SceneBatch(torch.from_numpy(store["pixels"].values[rows]), boxes, labels)


class Finding(Objective):
    """The set loss of varied pictures, and that of hints."""

    sums_over, fills_with = "boxes", "patch"

    def __init__(self, made: Preprocessing, held: DetectionConfig, flips: tuple[bool, bool]) -> None:
        self.made, self.held, self.flips = made, held, flips

    def groups(self, model: Any) -> Mapping[str, Group]:
        """One group; a backbone that was trained before moves at a tenth of the rate."""
        weights = [weight for weight in model.parameters() if weight.requires_grad]
        before = {id(weight) for weight in model.backbone.learned_before()}
        return {ALL: Group(weights, shares=[TRAINED if id(weight) in before else 1.0 for weight in weights])}

    def losses(self, model: Any, batch: SceneBatch) -> Iterator[Loss]:
        """One loss."""
        pixels = normalised(batch.pixels, self.made)
        pixels, boxes, left = varied(pixels, batch.boxes, self.held.augment, self.flips)
        names = [each[kept] for each, kept in zip(batch.labels, left, strict=True)]
        groups, queries = self.held.denoising, model.queries
        spoiled = spoil(names, boxes, groups=groups, classes=model.classes, queries=queries)
        found = model(pixels, None if spoiled is None else spoiled.hints)
        total = set_loss(without_hints(found, spoiled), names, boxes)
        yield Loss(total if spoiled is None else total + hint_loss(found, spoiled))


class Judge:
    """Measures AP on held-out pictures; it decides."""

    shares = True

    def __init__(self, store: Columns, rows: Rows, made: Preprocessing, classes: int) -> None:
        self.store, self.rows, self.made, self.classes = store, rows, made, classes

    def measure(
        self,
        model: nn.Module,
        device: torch.device,
        train: TrainConfig,
        *,
        limit: Limit | None = None,
        last: bool = False,
    ) -> Measurement:
        """AP, AP50 and AP75."""
        from regard.process.device import autocast

        start = limit.clock() if limit else 0.0
        found: list[Objects] = []

        def detected(begin: int) -> list[list[Any]]:
            batch = collate(self.store, self.rows[begin : begin + BATCH]).to(device)
            out = model(normalised(batch.pixels, self.made))
            sizes = [self._size(row) for row in self.rows[begin : begin + BATCH]]
            return [
                [None if part is None else part.tolist() for part in each]
                for each in objects_of(out.classes[-1], out.boxes[-1], sizes)
            ]

        with undisturbed(model), autocast(device, train.precision):
            for some in shared(detected, range(0, len(self.rows), BATCH), Limit()):
                found += [Objects(*map(np.array, each)) for each in some]
        scores = box_scores([self._true(row) for row in self.rows], found, self.classes)
        return Measurement(scores, seconds=limit.clock() - start if limit else 0.0)

    def _size(self, row: int) -> tuple[int, int]:
        height, width = self.store["size"].row(int(row)).tolist()
        return height, width

    def _true(self, row: int) -> Objects:
        height, width = self._size(row)
        boxes = self.store["box"].row(int(row)) * np.array([width, height, width, height])
        return Objects(boxes, self.store["label"].row(int(row)))


def settled(config: Config, data: Boxed) -> Config:
    """The config with the sizes that the pictures have."""
    held, survey = config.of(DetectionConfig), data.train.survey
    tall, wide = survey.sizes.most_common(1)[0][0]
    scale = min(1.0, LARGEST / max(tall, wide))
    height, width = held.height or round(tall * scale), held.width or round(wide * scale)
    stride = held.stride or (8 if max(height, width) <= SMALL else 16)
    changes: dict[str, Any] = {
        "detection.height": -(-height // stride) * stride,
        "detection.width": -(-width // stride) * stride,
        "detection.channels": held.channels or (3 if survey.colour else 1),
        "detection.stride": stride,
        "detection.classes": len(data.train.labels),
        "detection.queries": held.queries or min(300, max(12, SPARE * survey.most)),
    }
    if config.model.dropout < 0:
        changes["model.dropout"] = 0.0
    return merge(config, changes)


def mirrors(store: Columns, some: int = 300) -> tuple[bool, bool]:
    """Whether what is in the boxes may be mirrored, left to right and top to bottom."""
    crops: list[Tensor] = []
    labels: list[int] = []
    for row in spread(np.arange(len(store)), some):
        pixels = torch.from_numpy(np.array(store["pixels"].row(int(row)))).float()  # (1, C, H, W)
        sides = pixels.shape[3], pixels.shape[2], pixels.shape[3], pixels.shape[2]
        for box, label in zip(store["box"].row(int(row)), store["label"].row(int(row)), strict=True):
            left, top, right, bottom = (int(share * side) for share, side in zip(box, sides, strict=True))
            crop = pixels[:, :, top : max(bottom, top + 1), left : max(right, left + 1)]
            if crop.numel():
                crops.append(F.interpolate(crop, (_CROP, _CROP), mode="area")[0])
                labels.append(int(label))
    if len(set(labels)) < 2:
        return True, True
    held, names = torch.stack(crops).byte().numpy(), np.array(labels)
    return mirror_is_right(held, names), mirror_is_right(held.transpose(0, 1, 3, 2), names)


def lesson_for(job: Job) -> Lesson:
    """What a run works with."""
    data: Boxed = job.examples
    config = settled(job.config, data)
    held, labels = config.of(DetectionConfig), list(data.train.labels)
    fit = Fit(held.height, held.width, held.channels, "stretch")
    store = data.train.store(job.folder / "store" / "train", fit, labels)
    kept, judged, rows = _split(job.folder, data, store, fit, labels)
    made = Preprocessing.of(fit, store["pixels"].values)
    if held.backbone != "own":  # it was trained with others
        made = Preprocessing(fit, (MEAN,) * fit.channels, (SPREAD,) * fit.channels)
    flips = {"always": (True, True), "never": (False, False)}.get(held.flip) or mirrors(store)
    feed = StoreFeed(kept, [np.full(len(kept), grid_of(held).places)], config.train, partial(collate, store))
    survey = data.train.survey
    told = f"{len(store):,} pictures with {survey.boxes:,} boxes of {len(labels)} classes"
    job.reporter.said(
        f"{told}, {len(rows):,} to measure on; {fit.height} x {fit.width}, {held.queries} queries"
    )
    astray = data.train.astray.line(ASTRAY)
    lost = [line for line in (lost_in(store), survey.cut.line("(boxes)"), astray) if line]
    for line in lost:
        job.reporter.said(line)
    names = " + ".join(path.name for path in data.valid.paths) if data.valid else "held-out pictures"
    return Lesson(
        config,
        feed,
        Finding(made, held, flips),
        Judge(judged, rows, made, len(labels)) if len(rows) else None,
        files={LABELS: json.dumps(labels).encode(), PREPROCESSING: made.to_json()},
        data=[
            f"{told}, of which {len(kept):,} pictures were trained on",
            "boxes: " + ", ".join(f"{escape(name)} {count:,}" for name, count in data.train.labels.items()),
            *map(escape, lost),
        ],
        measured_on=f"{names} (validation)",
    )


def _split(
    folder: Path, data: Boxed, store: Columns, fit: Fit, labels: Sequence[str]
) -> tuple[Rows, Columns, Rows]:
    """Rows to train on; the store and the rows to measure on."""
    every = np.arange(len(store))
    if data.valid is None:
        count = min(HELD_OUT, len(store) // HELD_OUT_SHARE)
        rows = spread(every, count) if count else every[:0]
        return every[~np.isin(every, rows)], store, rows
    judged = data.valid.store(folder / "store" / "valid", fit, labels)
    return every, judged, spread(np.arange(len(judged)), 5 * HELD_OUT)
