"""From pictures to a lesson: pixels on disk, a judge trained first, the two losses, the scores.

Called by the task (`__init__.py`); before this file: `regard.data.pictures`; after it: `regard.training.run`.
"""

import json
from collections.abc import Sequence
from functools import partial

import numpy as np
import torch

from regard.atomic import write_bytes
from regard.config import Config, merge
from regard.config.gan import GanConfig
from regard.data.columns import Columns
from regard.data.pictures import Pictures, Survey, lost_in
from regard.errors import DataError, ModelError, UsageError
from regard.images.picture import Fit
from regard.models.card import escape
from regard.models.folder import Loaded
from regard.models.sagan import nearest_side, rungs
from regard.process.progress import Reporter
from regard.tasks.gan.drawer import CLASSES, names_in
from regard.tasks.gan.judge import JUDGE, Judge, from_bytes, to_bytes, train_judge
from regard.tasks.gan.objective import Adversaries, PictureBatch
from regard.tasks.gan.scores import Gallery
from regard.tasks.gan.validation import Appraiser
from regard.tasks.pictures import Parts
from regard.training.feed import Rows, StoreFeed
from regard.training.lesson import Job, Lesson

FEWEST = 20  # pictures that anything can be learned from
HELD_OUT, HELD_OUT_SHARE = 5000, 10  # pictures at most, and one in so many
SPARED = 30  # that say anything if they are held out
LARGEST = 64  # side that is taken by itself
LITTLE = 20_000  # pictures below which they are shifted and cut by themselves
JUDGE_SHARE, JUDGE_SECONDS = 0.08, 120.0  # of the minutes; at most
JUDGE_EPOCHS, JUDGE_PICTURES = 8, 200_000  # over the pictures; seen at most


class Drawable(Parts[Pictures]):
    """Pictures to learn to draw."""

    def check(self, *, thorough: bool) -> None:
        """Refuse what nothing can be learned from."""
        for each in (self.train, self.valid):
            if each is not None and each.survey.count < FEWEST:
                names = ", ".join(str(path) for path in each.paths)
                count = each.survey.count
                word = "picture" if count == 1 else "pictures"
                raise DataError(f"{names}: {count} {word}; to learn to draw takes {FEWEST} at least")


def batch_of(store: Columns, conditional: bool, rows: Rows) -> PictureBatch:
    """Some pictures as a batch."""
    held = gallery_of(store, conditional, rows)
    labels = None if held.labels is None else torch.from_numpy(held.labels)
    return PictureBatch(torch.from_numpy(held.pictures), labels)


def gallery_of(store: Columns, conditional: bool, rows: Rows) -> Gallery:
    """Some pictures of a store; it has one a row."""
    pictures = np.ascontiguousarray(store["pixels"].values[rows])
    return Gallery(pictures, store["label"].values[rows].astype(np.int64) if conditional else None)


def settled(config: Config, survey: Survey, names: Sequence[str]) -> Config:
    """The config with what the pictures say of themselves."""
    how = config.of(GanConfig)
    (height, width), _ = survey.sizes.most_common(1)[0]
    side = how.side or nearest_side(min(LARGEST, height, width))
    rungs(side)  # refuses what is no ladder
    channels = how.channels or (3 if survey.colour else 1)
    if channels == 2:
        raise UsageError("gan.channels (2) must be 1 (grey) or 3 (colour)")
    kind = how.augment
    if kind == "auto":
        kind = "none" if survey.count >= LITTLE else "all" if channels == 3 else "shift"
    changes = {"side": side, "channels": channels, "classes": len(names), "augment": kind}
    return merge(config, {f"gan.{key}": value for key, value in changes.items()})


def class_names(data: Drawable, base: Loaded | None) -> list[str]:
    """The classes that can be asked for; one alone is none. Those of a base model must be the same."""
    names = list(data.train.labels)
    names = names if len(names) > 1 else []
    if base is not None:
        theirs = names_in(base.files)
        if theirs != names:
            raise UsageError(
                f"the model to train further knows {len(theirs)} classes and these pictures have "
                f"{len(names)}, or others; it takes the same ones"
            )
    return names


def hold_out(count: int, seed: int) -> tuple[Rows, Rows]:
    """Pictures to train on and to measure on; of few none can be spared."""
    held = min(HELD_OUT, count // HELD_OUT_SHARE)
    if held < SPARED:
        return np.arange(count), np.arange(0)
    chosen = np.sort(np.random.default_rng(seed).permutation(count)[:held])
    return np.setdiff1d(np.arange(count), chosen), chosen


def judge_for(job: Job, config: Config, gallery: Gallery, made_of: str) -> Judge:
    """The one that this run has trained before, or a new one; it takes a share of the minutes."""
    path, how = job.folder / JUDGE, config.of(GanConfig)
    if path.exists():
        try:
            return from_bytes(path.read_bytes(), how.channels, made_of)
        except ModelError:
            pass  # of other pictures, or not whole
    minutes = config.train.minutes
    seconds = min(JUDGE_SECONDS, JUDGE_SHARE * 60 * minutes) if minutes else None
    judge = train_judge(
        gallery.pictures,
        gallery.labels,
        how.classes,
        epochs=max(1, min(JUDGE_EPOCHS, JUDGE_PICTURES // len(gallery))),
        seconds=seconds,
        seed=config.train.seed,
    )
    write_bytes(path, to_bytes(judge, made_of))
    return judge


def lesson_for(job: Job) -> Lesson:
    """What a run works with."""
    data: Drawable = job.examples
    names = class_names(data, job.base)
    config = settled(job.config, data.train.survey, names)
    how = config.of(GanConfig)
    fit = Fit(how.side, how.side, how.channels)
    store = data.train.store(job.folder / "store" / "train", fit, names)
    kept, held = hold_out(len(store), config.train.seed)
    conditional, measured_on = bool(names), "held-out pictures"
    if data.valid is not None:
        kept, measured_on = np.arange(len(store)), " + ".join(path.name for path in data.valid.paths)
        other = data.valid.store(job.folder / "store" / "valid", fit, names)
        held_out = gallery_of(other, conditional, np.arange(len(other)))
    elif len(held):
        held_out = gallery_of(store, conditional, held)
    else:
        held_out, measured_on = gallery_of(store, conditional, kept), "pictures that were trained on"
    seen = gallery_of(store, conditional, kept)
    made_of = json.dumps([data.fingerprints(), list(fit.shape), names, config.train.seed])
    judge = judge_for(job, config, seen, made_of)
    appraiser = Appraiser(job.folder, judge, held_out, seen, len(names))
    feed = StoreFeed(
        kept, [np.ones(len(kept), np.int64)], config.train, partial(batch_of, store, conditional)
    )
    told = described(data.train.survey, store, how)
    _say(job.reporter, told, names, f"measured on {len(held_out):,} {measured_on}", _judged(judge, held_out))
    files = {JUDGE: (job.folder / JUDGE).read_bytes(), CLASSES: json.dumps(names).encode()}
    return Lesson(
        config,
        feed,
        Adversaries(how),
        appraiser,
        files=files,
        data=[*told, f"{len(names)} classes: {', '.join(map(escape, names[:30]))}"] if names else told,
        measured_on=f"{measured_on} (validation)",
        report=lambda: appraiser.report(names),
    )


def described(survey: Survey, store: Columns, how: GanConfig) -> list[str]:
    """What was found and what was done to it, for people."""
    shape = f"{how.side} x {how.side} pixels, {'colour' if how.channels == 3 else 'grey'}"
    lines = [f"{len(store):,} pictures, drawn in {shape}"]
    others = sum(count for size, count in survey.sizes.items() if size != (how.side, how.side))
    if others:
        lines.append(
            f"{others:,} of other sizes ({len(survey.sizes):,} of them) were resized and cut to that"
        )
    return [*lines, *([lost] if (lost := lost_in(store)) else [])]


def _judged(judge: Judge, held: Gallery) -> str:
    """How well the judge sees, where that can be said."""
    if held.labels is None:
        return "the judge learned how pictures were turned"
    right = float((judge.look(held.pictures)[1] == held.labels).mean())
    return f"the judge tells {100 * right:.1f}% of them right"


def _say(reporter: Reporter, told: Sequence[str], names: Sequence[str], *more: str) -> None:
    for line in told:
        reporter.said(line)
    reporter.said("; ".join([f"{len(names)} classes" if names else "no classes", *more]))
