"""From pictures and labels to a lesson: sizes that follow from them, pixels on disk, the loss and the scores.

Called by the task (`__init__.py`). Before this file: `regard.data.pictures`; after it: `regard.training.run`.
"""

import copy
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.attention.quadratic import Quadratic
from regard.config import Config, TrainConfig, merge
from regard.config.image import ImageConfig
from regard.data.columns import Columns, held_out
from regard.data.pictures import Pictures, lost_in
from regard.errors import DataError, shown
from regard.images.picture import Fit
from regard.images.preprocessing import PREPROCESSING, Preprocessing
from regard.measure.labels import Table, confusion, label_scores
from regard.measure.score import Score
from regard.models.card import escape
from regard.models.vision import grid_of
from regard.tasks.image.augment import augmented, mirror_is_right
from regard.tasks.image.figure import confusion_picture, heads_picture
from regard.tasks.pictures import LABELS, Parts
from regard.training.feed import Rows, StoreFeed, spread
from regard.training.lesson import Job, Lesson
from regard.training.objective import Limit, Loss, Measurement, Objective, shared, undisturbed

CONFUSION, HEADS = "confusion.png", "heads.png"
HELD_OUT, HELD_OUT_SHARE = 2000, 20  # pictures at most, and one in so many
LEAST = 2  # pictures that a label must have
BATCH = 128  # pictures, where nothing else is asked for
LARGEST = 64  # pixels of a side that is taken from the pictures as it is
MOST_SHOWN = 30  # labels that a card lists


@dataclass(frozen=True)
class Labelled(Parts[Pictures]):
    """Pictures with labels."""

    def check(self, *, thorough: bool) -> None:
        """Refuse what cannot be learned from."""
        labels = self.train.labels
        if not labels:
            raise DataError(
                f"{self.named}: these pictures have no labels; give a folder a class, or a .csv of path,label"
            )
        if len(labels) == 1:
            count, only = self.train.survey.count, shown(next(iter(labels)))
            raise DataError(
                f"{self.named}: all {count:,} pictures are {only}; there must be two classes at least"
            )
        rare = min(labels, key=lambda label: (labels[label], label))
        if labels[rare] < LEAST:
            raise DataError(
                f"{self.named}: there is one picture of {shown(rare)}; give more of it, or leave it out"
            )
        super().check(thorough=thorough)


@dataclass(frozen=True)
class PictureBatch:
    """Pictures (B, C, H, W) uint8, and their labels (B,)."""

    pixels: Tensor
    labels: Tensor

    @property
    def targets(self) -> int:
        """Pictures."""
        return len(self.labels)

    def to(self, device: torch.device | str) -> "PictureBatch":
        """The same on a device."""
        return PictureBatch(self.pixels.to(device), self.labels.to(device))


def collate(store: Columns, rows: Rows) -> PictureBatch:
    """Some rows as one batch."""
    pixels, labels = store["pixels"].values[rows], store["label"].values[rows]
    return PictureBatch(torch.from_numpy(pixels), torch.from_numpy(labels.astype(np.int64)))


class Classes(Objective):
    """Cross-entropy of the class of varied pictures."""

    sums_over, fills_with = "pictures", "patch"

    def __init__(self, made: Preprocessing, smoothing: float, strength: float, *, flip: bool) -> None:
        self.made, self.smoothing, self.strength, self.flip = made, smoothing, strength, flip

    def losses(self, model: Any, batch: PictureBatch) -> Iterator[Loss]:
        """One loss."""
        pixels = augmented(normalised(batch.pixels, self.made), self.strength, flip=self.flip)
        logits = model(pixels).float()
        yield Loss(F.cross_entropy(logits, batch.labels, label_smoothing=self.smoothing, reduction="sum"))


def normalised(pixels: Tensor, made: Preprocessing) -> Tensor:
    """`Preprocessing.normalised` on tensors (B, C, H, W)."""
    mean, scale = (
        torch.tensor(each, device=pixels.device)[:, None, None] for each in (made.mean, made.spread)
    )
    return (pixels.float() / 255 - mean) / scale


class Judge:
    """Measures on held-out pictures; accuracy decides."""

    shares = True

    def __init__(self, store: Columns, rows: Rows, made: Preprocessing, labels: Sequence[str]) -> None:
        self.store, self.rows, self.made, self.labels = store, rows, made, labels
        self.table: Table | None = None  # of the last measurement
        self.begun: list[Quadratic] = []  # layers whose heads began as a convolution

    def measure(
        self,
        model: nn.Module,
        device: torch.device,
        train: TrainConfig,
        *,
        limit: Limit | None = None,
        last: bool = False,
    ) -> Measurement:
        """Accuracy, macro F1 and the loss."""
        from regard.process.device import autocast

        wanted: list[int] = []
        given: list[int] = []
        total = 0.0
        start = limit.clock() if limit else 0.0

        def measured(begin: int) -> tuple[float, list[int], list[int]]:
            batch = collate(self.store, self.rows[begin : begin + BATCH]).to(device)
            logits = model(normalised(batch.pixels, self.made)).float()
            lost = float(F.cross_entropy(logits, batch.labels, reduction="sum"))
            return lost, batch.labels.tolist(), logits.argmax(-1).tolist()

        with undisturbed(model), autocast(device, train.precision):
            for lost, labels, said in shared(measured, range(0, len(self.rows), BATCH), Limit()):
                total, wanted, given = total + lost, wanted + labels, given + said
        self.table = confusion(wanted, given, len(self.labels))
        loss = Score(total / max(1, len(wanted)), higher=False, count=len(wanted))
        self.begun = convolutional(model) if last else []
        seconds = limit.clock() - start if limit else 0.0
        return Measurement(label_scores(self.table) | {"loss": loss}, seconds=seconds)


def settled(config: Config, data: Labelled) -> Config:
    """The config with the sizes that the pictures have."""
    image, survey = config.of(ImageConfig), data.train.survey
    common = survey.sizes.most_common(1)[0][0]
    usual = common if max(common) <= LARGEST else (LARGEST, LARGEST)
    height, width = image.height or image.width or usual[0], image.width or image.height or usual[1]
    patch = image.patch or 2 ** max(0, (max(height, width) - 1).bit_length() - 3)
    changes: dict[str, Any] = {
        "image.height": height,
        "image.width": width,
        "image.channels": image.channels or (3 if survey.colour else 1),
        "image.patch": patch,
        "image.classes": len(data.train.labels),
    }
    if config.model.dropout < 0:
        changes["model.dropout"] = 0.0
    return merge(config, changes)


def hold_out(store: Columns, known: Rows) -> tuple[Rows, Rows]:
    """Rows to train on, and rows to measure on, chosen by a hash of their pixels."""
    contents = (store["pixels"].row(int(i)).tobytes() for i in known)
    train, held = held_out(contents, HELD_OUT, HELD_OUT_SHARE)
    return known[train], known[held]


def lesson_for(job: Job) -> Lesson:
    """What a run works with."""
    data: Labelled = job.examples
    config = settled(job.config, data)
    image, labels = config.of(ImageConfig), list(data.train.labels)
    fit = Fit(image.height, image.width, image.channels, image.fit)
    store = data.train.store(job.folder / "store" / "train", fit, labels)
    if not len(store):
        raise DataError(f"{', '.join(map(str, data.paths))}: no picture is left; {lost_in(store)}")
    kept, held, rows = _split(job.folder, data, store, fit, labels)
    made = Preprocessing.of(fit, store["pixels"].values)
    flip = image.flip == "always" or (
        image.flip == "auto" and mirror_is_right(store["pixels"].values, store["label"].values)
    )
    judge = Judge(held, rows, made, labels) if len(rows) else None
    places = np.full(len(kept), grid_of(image).places)
    feed = StoreFeed(kept, [places], config.train, partial(collate, store))
    told = f"{len(store):,} pictures of {len(labels)} classes, {len(rows):,} to measure on"
    job.reporter.said(f"{told}; {fit.height} x {fit.width}, {'colour' if fit.channels == 3 else 'grey'}")
    if lost := lost_in(store):
        job.reporter.said(lost)
    names = " + ".join(path.name for path in data.valid.paths) if data.valid else "held-out pictures"
    files = {LABELS: json.dumps(labels).encode(), PREPROCESSING: made.to_json()}
    return Lesson(
        config,
        feed,
        Classes(made, config.train.label_smoothing, image.augment, flip=flip),
        judge,
        files=files,
        data=_told(store, data, kept, fit, flip=flip),
        measured_on=f"{names} (validation)",
        report=lambda: _report(judge, labels, files),
    )


def _split(
    folder: Path, data: Labelled, store: Columns, fit: Fit, labels: Sequence[str]
) -> tuple[Rows, Columns, Rows]:
    """Rows to train on; the store and the rows to measure on."""
    known = np.flatnonzero(store["label"].values >= 0).astype(np.int64)
    if data.valid is None:
        kept, rows = hold_out(store, known)
        return kept, store, rows
    held = data.valid.store(folder / "store" / "valid", fit, labels)
    rows = spread(np.flatnonzero(held["label"].values >= 0).astype(np.int64), 5 * HELD_OUT)
    return known, held, rows


def _told(store: Columns, data: Labelled, kept: Rows, fit: Fit, *, flip: bool) -> list[str]:
    labels = data.train.labels
    known = store["label"].values
    found = np.bincount(known[known >= 0], minlength=len(labels)).tolist()  # of what could be read
    pairs = islice(zip(labels, found, strict=True), MOST_SHOWN)
    counts = ", ".join(f"{escape(name)} {count:,}" for name, count in pairs)
    lines = [
        f"{len(store):,} pictures, of which {len(kept):,} were trained on",
        f"{len(labels)} classes: {counts}",
        f"brought to {fit.height} x {fit.width} ({fit.how}); {'also' if flip else 'never'} mirrored",
    ]
    return lines + ([escape(lost_in(store))] if lost_in(store) else [])


def _report(judge: Judge | None, labels: Sequence[str], files: dict[str, bytes]) -> str:
    """The confusion matrix for the card, and what became of a convolution: pictures in the folder."""
    if judge is None or judge.table is None:
        return ""
    files[CONFUSION] = confusion_picture(judge.table, labels)
    told = f"## Which was taken for which\n\n![right classes in rows, given ones in columns]({CONFUSION})\n"
    if not judge.begun:
        return told
    files[HEADS] = heads_picture(judge.begun)
    stayed = sum(int(heads.stayed().sum()) for heads in judge.begun)
    count = sum(len(heads.centres) for heads in judge.begun)
    return (
        f"{told}\n## Heads that began as a convolution\n\n"
        f"{stayed} of {count} still look at their place of the kernel.\n\n"
        f"![the places that heads began at, and where they look now]({HEADS})\n"
    )


def convolutional(model: Any) -> list[Quadratic]:
    """What became of heads that began as a convolution, layer by layer; a copy."""
    layers = getattr(model, "encoder", ()) if getattr(model, "begun", False) else ()
    return [copy.deepcopy(layer.attention.positions) for layer in layers]
