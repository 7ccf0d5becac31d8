"""From labelled files to a lesson: labels, tokenizer, columns on disk, the loss and the scores.

An example is kept as its ids, its labels, and where its words begin and end. A sentence of words that is
longer than the model has places for becomes several rows, so that every word keeps its label; a text is cut.
Called by the task (`__init__.py`); after this file: `regard.training.run`.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.config import Config, TrainConfig, merge
from regard.data.columns import Chunk, Columns, Kind, held_out, open_columns
from regard.data.inputs import Tokens
from regard.measure.labels import Table, confusion, label_scores
from regard.measure.score import Score
from regard.models.card import escape
from regard.models.folder import Loaded
from regard.tasks.encoder.reader import FRAME
from regard.tasks.labels import LabelsConfig
from regard.tasks.labels.examples import Labelled
from regard.text.tokenizer import Tokenizer
from regard.training.feed import Rows, StoreFeed
from regard.training.lesson import Job, Lesson, run_tokenizer
from regard.training.objective import ALL, Group, Limit, Loss, Measurement, Objective, shared, undisturbed

LABELS = "labels.json"
HELD_OUT, HELD_OUT_SHARE = 1000, 20  # examples at most, and one in so many
CHUNK = 1000  # examples that are written at a time
VALID_TOKENS = 4096  # of a batch of validation
MOST_SPOKEN = 2**22  # numbers of the table of runs
MOST_SHOWN = 30  # labels of a table that people can still read


@dataclass(frozen=True)
class LabelBatch:
    """Rows, the places of their words (N, 3) where words have labels, and the labels (N,)."""

    inputs: Tokens
    spots: Tensor | None
    labels: Tensor

    @property
    def targets(self) -> int:
        """Labels."""
        return len(self.labels)

    def to(self, device: torch.device | str) -> "LabelBatch":
        """The same on a device."""
        spots = None if self.spots is None else self.spots.to(device)
        return LabelBatch(self.inputs.to(device), spots, self.labels.to(device))


def cut_words(
    tokenizer: Tokenizer, words: Sequence[str], room: int | None
) -> Iterator[tuple[list[int], list[tuple[int, int]]]]:
    """Words as rows of ids that the model has places for, and the first and last place of each word."""
    ids: list[int] = []
    spots: list[tuple[int, int]] = []
    most = None if room is None else room - FRAME
    for pieces in tokenizer.encode_words(words):
        pieces = (pieces or [tokenizer.unknown_id])[:most]
        if spots and most is not None and len(ids) + len(pieces) > most:
            yield [tokenizer.begin_id, *ids, tokenizer.end_id], spots
            ids, spots = [], []
        spots.append((len(ids) + 1, len(ids) + len(pieces)))
        ids += pieces
    yield [tokenizer.begin_id, *ids, tokenizer.end_id], spots


def store_of(
    folder: Path,
    data: Labelled,
    paths: Sequence[Path],
    labels: Sequence[str],
    tokenizer: Tokenizer,
    room: int,
) -> Columns:
    """The examples of some files as columns: ids and label; of words also first and last."""
    number = {label: place for place, label in enumerate(labels)}
    words = bool(data.column)
    names = ("ids", "label", "first", "last") if words else ("ids", "label")

    def rows() -> Iterator[tuple[list[int], ...]]:
        for example in data.read(paths):
            if words:
                given = iter([number[label] for label in example.labels])
                for ids, spots in cut_words(tokenizer, example.words, room):
                    yield ids, [next(given) for _ in spots], [a for a, _ in spots], [b for _, b in spots]
            else:
                ids = tokenizer.encode(example.words[0])[: room - FRAME]
                yield [tokenizer.begin_id, *ids, tokenizer.end_id], [number[example.labels[0]]]

    def chunks(report: dict[str, Any]) -> Iterator[Chunk]:
        left = rows()
        while held := list(islice(left, CHUNK)):
            yield dict(zip(names, zip(*held, strict=True), strict=True))

    which = "valid" if tuple(paths) == data.valid else "train"
    inputs = [data.fingerprints(), list(labels), tokenizer.to_json(), room, data.column, which]
    return open_columns(folder, inputs, {name: Kind("<i4") for name in names}, chunks)


def collate(store: Columns, pad_id: int, words: bool, rows: Rows) -> LabelBatch:
    """Some rows as one batch."""
    ids = torch.from_numpy(store["ids"].padded(rows, pad_id).astype(np.int64))
    lengths = torch.from_numpy(store["ids"].lengths[rows])
    mask = torch.arange(ids.shape[1]) < lengths[:, None]
    labels = np.concatenate([store["label"].row(row) for row in rows]).astype(np.int64)
    spots = None
    if words:
        counts = store["label"].lengths[rows]
        parts = [np.repeat(np.arange(len(rows)), counts)]
        parts += [np.concatenate([store[name].row(row) for row in rows]) for name in ("first", "last")]
        spots = torch.from_numpy(np.stack(parts, 1).astype(np.int64))
    return LabelBatch(Tokens(ids, mask), spots, torch.from_numpy(labels))


class Labels(Objective):
    """Cross-entropy of labels; what an encoder knew before moves more slowly than what is new."""

    def __init__(
        self, smoothing: float, pace: float = 1.0, decay: float = 1.0, *, hide: float = 0.0, mask_id: int = 0
    ) -> None:
        """`pace`: the encoder's rate beside that of labels; `decay`: a layer's beside the one above it.

        `hide`: the share of the tokens that are masks instead, others each time, so that few texts are not
        learned by heart (word dropout).
        """
        self.smoothing, self.pace, self.decay = smoothing, pace, decay
        self.hide, self.mask_id = hide, mask_id

    def groups(self, model: Any) -> Mapping[str, Group]:
        """One group; a weight's share of the rate is by how deep it lies."""
        shares: dict[int, float] = {}
        for above, storey in enumerate(reversed(model.body.storeys())):
            shares |= {id(weight): self.pace * self.decay**above for weight in storey}
        weights = [weight for weight in model.parameters() if weight.requires_grad]
        return {ALL: Group(weights, shares=[shares.get(id(weight), 1.0) for weight in weights])}

    def losses(self, model: Any, batch: LabelBatch) -> Iterator[Loss]:
        """One loss."""
        inputs = batch.inputs
        if self.hide and model.training:
            hidden = torch.rand(inputs.ids.shape, device=inputs.ids.device) < self.hide
            inputs = Tokens(inputs.ids.masked_fill(hidden, self.mask_id), inputs.mask)
        losses = [
            F.cross_entropy(said.float(), batch.labels, label_smoothing=self.smoothing, reduction="sum")
            for said in model.opinions(inputs, batch.spots)
        ]
        yield Loss(torch.stack(losses).mean())


class Judge:
    """Measures on held-out examples; accuracy decides."""

    shares = True

    def __init__(self, store: Columns, rows: Rows, make: Any, labels: Sequence[str]) -> None:
        self.store, self.rows, self.make, self.labels = store, rows, make, labels
        self.table: Table | None = None  # of the last measurement

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
        lengths = self.store["ids"].lengths[self.rows]
        start = limit.clock() if limit else 0.0

        def measured(rows: Rows) -> tuple[float, list[int], list[int]]:
            batch = self.make(rows).to(device)
            logits = model(batch.inputs, batch.spots).float()
            lost = float(F.cross_entropy(logits, batch.labels, reduction="sum"))
            return lost, batch.labels.tolist(), logits.argmax(-1).tolist()

        with undisturbed(model), autocast(device, train.precision):
            for lost, labels, said in shared(measured, list(_sorted_batches(self.rows, lengths)), Limit()):
                total, wanted, given = total + lost, wanted + labels, given + said
        self.table = confusion(wanted, given, len(self.labels))
        loss = Score(total / max(1, len(wanted)), higher=False, count=len(wanted))
        seconds = limit.clock() - start if limit else 0.0
        return Measurement(label_scores(self.table) | {"loss": loss}, seconds=seconds)


def _sorted_batches(rows: Rows, lengths: Any) -> Iterator[Rows]:
    order = np.argsort(lengths, kind="stable")
    start = 0
    for place in range(len(order)):
        if (place + 1 - start) * int(lengths[order[place]]) > VALID_TOKENS and place > start:
            yield rows[order[start:place]]
            start = place
    yield rows[order[start:]]


def hold_out(store: Columns) -> tuple[Rows, Rows]:
    """Rows to train on, and rows to measure on, chosen by a hash of their ids."""
    contents = (store["ids"].row(i).tobytes() for i in range(len(store)))
    return held_out(contents, HELD_OUT, HELD_OUT_SHARE)


def tokenizer_for(folder: Path, data: Labelled, config: Config, base: Loaded | None) -> Tokenizer:
    """The base model's tokenizer, the one this run has learned before, or a new one."""

    def learn() -> Tokenizer:
        lines = (" ".join(example.words) for example in data.read(data.train))
        return Tokenizer.train(lines, config.text.vocab_size)

    return run_tokenizer(folder, base, learn)


def lesson_for(job: Job, how: Any) -> Lesson:
    """What a run works with; `how` is the task's own table of the config."""
    data: Labelled = job.examples.by(how.column)
    counts = data.labels()
    labels = list(counts)
    tokenizer = tokenizer_for(job.folder, data, job.config, job.base)
    config = _settled(job.config, tokenizer, len(labels), sum(counts.values()))
    room = _room(config)
    make = partial(store_of, data=data, labels=labels, tokenizer=tokenizer, room=room)
    store = make(job.folder / "store" / "train", paths=data.train)
    words = bool(data.column)
    held, rows = store, np.arange(len(store))
    kept = rows
    if data.valid:
        held = make(job.folder / "store" / "valid", paths=data.valid)
        rows = np.arange(len(held))
    else:
        kept, rows = hold_out(store)
    judge = Judge(held, rows, partial(collate, held, tokenizer.pad_id, words), labels) if len(rows) else None
    feed = StoreFeed(
        kept, [store["ids"].lengths[kept]], config.train, partial(collate, store, tokenizer.pad_id, words)
    )
    job.reporter.said(
        f"{len(store):,} {'sentences' if words else 'texts'} with {len(labels)} labels, "
        f"{len(rows):,} to measure on; {feed.count(0):,} batches an epoch"
    )
    names = " + ".join(path.name for path in data.valid) or "held-out training data"
    return Lesson(
        config,
        feed,
        Labels(
            config.train.label_smoothing,
            *((how.pace, how.decay) if job.base else ()),
            hide=how.hide,
            mask_id=tokenizer.mask_id,
        ),
        judge,
        files={"tokenizer.json": tokenizer.to_json().encode(), LABELS: json.dumps(labels).encode()},
        data=[
            f"{len(store):,} {'sentences' if words else 'texts'}, of which {len(kept):,} were trained on",
            f"{len(labels)} labels: "
            + ", ".join(f"{escape(name)} {count:,}" for name, count in islice(counts.items(), MOST_SHOWN)),
        ],
        measured_on=f"{names} (validation)",
        report=lambda: "" if judge is None or judge.table is None else as_markdown(judge.table, labels),
    )


def _settled(config: Config, tokenizer: Tokenizer, labels: int, examples: int) -> Config:
    """The config with the sizes of the vocabulary and of the labels, and a dropout."""
    rows = min(config.of(LabelsConfig).grams, max(1, MOST_SPOKEN // labels))
    changes: dict[str, Any] = {"labels.count": labels, "labels.grams": rows}
    if not config.model.vocab_size:
        changes["model.vocab_size"] = tokenizer.vocab_size
    if config.model.dropout < 0:
        changes["model.dropout"] = 0.3 if examples < 50_000 else 0.2
    return merge(config, changes)


def _room(config: Config) -> int:
    """Tokens of a row."""
    learned = config.positions.kind == "learned"
    return min(config.data.max_length, config.positions.max_length) if learned else config.data.max_length


def as_markdown(table: Table, labels: Sequence[str]) -> str:
    """The table for a card: what was right, and what was said in its place."""
    if len(labels) > MOST_SHOWN:
        return ""
    names = [escape(label) for label in labels]
    rows = [
        f"| {name} | {' | '.join(f'{count:,}' for count in row)} |"
        for name, row in zip(names, table.tolist(), strict=True)
    ]
    head = [f"| right \\ given | {' | '.join(names)} |", f"|---|{'---:|' * len(names)}"]
    return "\n".join(["## Which was taken for which\n", *head, *rows, ""])
