"""From running text to a lesson with two kinds of batches, and both scores of what it taught.

A row is the same tokens either way: read on (`regard.tasks.language`), or with words hidden
(`regard.tasks.masked`). Which kind a batch is follows from its place alone. After this file:
`regard.training.run`.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import nn

from regard.config import TrainConfig, merge
from regard.config.file import read_config
from regard.data.rows import IDS, RowFeed, open_tokens
from regard.data.texts import Running, Texts
from regard.measure.score import Score
from regard.tasks.encoder.reader import FRAME
from regard.tasks.language.evaluate import evaluation as next_evaluation
from regard.tasks.language.feed import RowBatch, row_batch
from regard.tasks.language.prepare import NEEDED, Next, tokenizer_for, with_dropout
from regard.tasks.language.validation import Validation
from regard.tasks.masked.lesson import GapJudge, Gaps, HiddenBatch, Rows
from regard.tasks.masked.lesson import evaluation as gap_evaluation
from regard.tasks.task import Evaluation
from regard.training.lesson import Job, Lesson
from regard.training.objective import Limit, Loss, Measurement, Objective


class BothFeed(RowFeed[RowBatch | HiddenBatch]):
    """Batches of which a share has gaps, evenly spread."""

    def __init__(self, rows: Rows, length: int, train: TrainConfig, masked: float) -> None:
        super().__init__(
            len(rows.ids), length - FRAME, self.read_on, batch_tokens=train.batch_tokens, seed=train.seed
        )
        self.held, self.masked = rows, masked

    def read_on(self, spans: Any) -> RowBatch:
        """Rows as they are."""
        return row_batch(self.held.ids, spans, self.held.tokenizer.specials)

    def hides(self, epoch: int, position: int) -> bool:
        """Whether a batch has gaps; in the next epoch it is another's turn."""
        place = position + epoch
        return int((place + 1) * self.masked) > int(place * self.masked)

    def batch(self, epoch: int, position: int) -> RowBatch | HiddenBatch:
        """One batch."""
        if not self.hides(epoch, position):
            return super().batch(epoch, position)
        spans = self._of(epoch)[position * self.rows : (position + 1) * self.rows]
        return self.held.batch(spans, epoch, position)


class Either(Objective):
    """The loss that a batch asks for."""

    def __init__(self, smoothing: float) -> None:
        self.gaps, self.next = Gaps(smoothing), Next(smoothing)

    def losses(self, model: Any, batch: RowBatch | HiddenBatch) -> Iterator[Loss]:
        """One loss."""
        if isinstance(batch, HiddenBatch):
            yield from self.gaps.losses(model, batch)
        else:
            yield from self.next.losses(model, batch)


class Judges:
    """Both scores on held-out text; the mean of both losses decides, unless one kind alone is learned."""

    shares = True

    def __init__(self, following: Validation, gaps: GapJudge, masked: float) -> None:
        self.following, self.gaps, self.masked = following, gaps, masked

    def measure(
        self,
        model: nn.Module,
        device: torch.device,
        train: TrainConfig,
        *,
        limit: Limit | None = None,
        last: bool = False,
    ) -> Measurement:
        """Half of the time each."""
        half = None if limit is None else limit.part(0.5)
        one = self.following.measure(model, device, train, limit=half, last=last)
        two = self.gaps.measure(model, device, train, limit=limit, last=last)
        both = one.complete and two.complete
        return Measurement(joined(one.scores, two.scores, self.masked), both, one.seconds + two.seconds)


def joined(following: Any, gaps: Any, masked: float) -> dict[str, Score]:
    """The scores of what comes next and of gaps, by names of their own; `masked` weighs their losses."""
    mean = (1 - masked) * following["loss"].value + masked * gaps["loss"].value
    return {
        "loss": Score(mean, higher=False, digits=4),
        "bits_per_byte": following["bits_per_byte"],
        "perplexity": following["perplexity"],
        "gap_perplexity": Score(gaps["perplexity"].value, higher=False, digits=2, label="perplexity of gaps"),
        "gap_accuracy": Score(gaps["accuracy"].value, digits=4, label="accuracy of gaps"),
    }


def lesson_for(job: Job, masked: float, share: float) -> Lesson:
    """What a run works with: a `masked` share of the batches hides a `share` of the words."""
    running: Running = job.examples
    kept, held = running.split()
    tokenizer = tokenizer_for(job, kept)
    config = merge(job.config, {"model.vocab_size": job.config.model.vocab_size or tokenizer.vocab_size})
    made = {
        name: open_tokens(documents, tokenizer, job.folder / "store" / name)
        for name, documents in (("train", kept), ("valid", held))
        if documents
    }
    rows = {
        name: Rows(store[IDS].values, tokenizer, share, config.train.seed) for name, store in made.items()
    }
    length, tokens = config.data.context, made["train"].report["tokens"]
    feed = BothFeed(rows["train"], length, config.train, masked)
    judge = None
    if "valid" in rows:
        following = Validation(rows["valid"].ids, length, tokenizer)
        judge = Judges(following, GapJudge(rows["valid"], length), masked)
    job.reporter.said(
        f"{running.train.summary()}; {tokens:,} tokens of {tokenizer.vocab_size:,} kinds, "
        f"{feed.count(0):,} batches an epoch, {masked:.0%} of them with gaps"
    )
    names = " + ".join(path.name for path in running.valid.paths) if running.valid else "held-out text"
    return Lesson(
        with_dropout(config, tokens),
        feed,
        Either(config.train.label_smoothing),
        judge,
        files={"tokenizer.json": tokenizer.to_json().encode()},
        data=[running.train.summary(), f"{tokens:,} tokens; {masked:.0%} of the batches had gaps"],
        measured_on=f"{names} (validation)",
        needed=NEEDED,
    )


def evaluation(folder: Path, files: Sequence[Path], *, device: Any = "cpu", **others: Any) -> Evaluation:
    """The scores of a language model on a text, and those of its gaps; the loss is the mean of the two."""
    following = next_evaluation(folder, files, device=device, **others)
    config = read_config(folder)
    gaps = gap_evaluation(folder, Texts(tuple(files)), device, length=config.data.context)
    return Evaluation(joined(following.scores, gaps.scores, 0.5), following.more)
