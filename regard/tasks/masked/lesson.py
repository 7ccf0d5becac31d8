"""From running text to a lesson: rows with hidden words, the loss where they are, perplexity and accuracy.

The output layer is computed at hidden places only. Validation hides the same words every time. Before this
file: `regard.data.texts` and `rows`, `hiding.py`; after it: `regard.training.run`.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.config import Config, TrainConfig, merge
from regard.data.inputs import Tokens
from regard.data.rows import IDS, RowFeed, Spans, cut_rows, gather, open_tokens
from regard.data.texts import Document, Running, Texts, parts
from regard.measure.score import Score
from regard.models.folder import Loaded, load_folder
from regard.process.device import autocast
from regard.tasks.encoder.reader import FRAME
from regard.tasks.masked.hiding import hide
from regard.tasks.task import Evaluation, Judge
from regard.text.running import RunningText
from regard.text.tokenizer import Tokenizer
from regard.training.lesson import Job, Lesson, run_tokenizer
from regard.training.loss import token_loss
from regard.training.objective import Limit, Loss, Measurement, Objective, shared, undisturbed

VALID_ROWS = 512  # at most, evenly spread
_DRAWN = 7919  # tells what is hidden apart from what else a seed decides


@dataclass(frozen=True)
class HiddenBatch:
    """Rows with hidden words, what stood there (B, L), and where that is asked (B, L)."""

    inputs: Tokens
    wanted: Tensor
    asked: Tensor
    targets: int

    def to(self, device: torch.device | str) -> "HiddenBatch":
        """The same on a device."""
        return HiddenBatch(
            self.inputs.to(device), self.wanted.to(device), self.asked.to(device), self.targets
        )


class Rows:
    """Tokens on disk as batches with hidden words."""

    def __init__(self, ids: Any, tokenizer: Tokenizer, share: float, seed: int) -> None:
        self.ids, self.tokenizer, self.share, self.seed = ids, tokenizer, share, seed

    def batch(self, spans: Spans, *place: int) -> HiddenBatch:
        """The rows of spans (B, 2) between begin and end; what is hidden is drawn for that place."""
        ids, real = gather(self.ids, spans, fill=self.tokenizer.pad_id)
        whole = np.full((len(ids), ids.shape[1] + FRAME), self.tokenizer.pad_id, np.int64)
        whole[:, 0] = self.tokenizer.begin_id
        whole[:, 1:-1] = ids
        lengths = real.sum(1)
        whole[np.arange(len(ids)), lengths + 1] = self.tokenizer.end_id
        there = np.arange(whole.shape[1]) < (lengths + FRAME)[:, None]
        random = np.random.Generator(np.random.Philox(np.random.SeedSequence([self.seed, _DRAWN, *place])))
        shown, asked = hide(whole, there, self.tokenizer, self.share, random)
        inputs = Tokens(torch.from_numpy(shown), torch.from_numpy(there))
        return HiddenBatch(inputs, torch.from_numpy(whole), torch.from_numpy(asked), int(asked.sum()))


class HiddenFeed(RowFeed[HiddenBatch]):
    """Batches whose hidden words are others in every epoch."""

    def __init__(self, rows: Rows, length: int, train: TrainConfig) -> None:
        super().__init__(
            len(rows.ids), length - FRAME, rows.batch, batch_tokens=train.batch_tokens, seed=train.seed
        )
        self.held = rows

    def batch(self, epoch: int, position: int) -> HiddenBatch:
        """One batch."""
        spans = self._of(epoch)[position * self.rows : (position + 1) * self.rows]
        return self.held.batch(spans, epoch, position)


class Gaps(Objective):
    """Cross-entropy of what was hidden."""

    def __init__(self, smoothing: float) -> None:
        self.smoothing = smoothing

    def losses(self, model: Any, batch: HiddenBatch) -> Iterator[Loss]:
        """One loss; the layer before the output sees hidden places only, as the output does."""
        picked, wanted = _picked(model, batch)
        everywhere = torch.ones_like(wanted, dtype=torch.bool)
        yield Loss(
            token_loss(model, picked[None], wanted[None], everywhere[None], label_smoothing=self.smoothing)
        )


def _picked(model: Any, batch: HiddenBatch) -> tuple[Tensor, Tensor]:
    """What goes into the output layer (N, D), and what should come out of it (N,)."""
    asked = batch.asked.roll(-model.ahead, 1)  # never the first place: a row begins with what is no text
    return model.transform(model.encode(batch.inputs)[asked]), batch.wanted[batch.asked]


class GapJudge:
    """Measures on held-out rows, whose hidden words are the same every time."""

    shares = True

    def __init__(self, rows: Rows, length: int) -> None:
        spans = cut_rows(len(rows.ids), length - FRAME)
        chosen = np.linspace(0, len(spans) - 1, min(len(spans), VALID_ROWS)).round().astype(np.int64)
        self.rows, self.spans, self.together = rows, spans[chosen], max(1, 4096 // length)

    def measure(
        self,
        model: nn.Module,
        device: torch.device | str,
        train: TrainConfig | None,
        *,
        limit: Limit | None = None,
        last: bool = False,
    ) -> Measurement:
        """Loss, perplexity and accuracy of the hidden tokens."""
        total, right, count = 0.0, 0, 0
        start = limit.clock() if limit else 0.0
        done = 0
        places = range(0, len(self.spans), self.together)

        def measured(at: int) -> tuple[float, int, int]:
            batch = self.rows.batch(self.spans[at : at + self.together], at).to(device)
            picked, wanted = _picked(model, batch)
            held: Any = model
            logits = F.linear(picked, held.output_weight, held.output_bias).float()
            lost = float(F.cross_entropy(logits, wanted, reduction="sum"))
            return lost, int((logits.argmax(-1) == wanted).sum()), len(wanted)

        with undisturbed(model), autocast(torch.device(device), train.precision if train else "fp32"):
            for lost, hits, asked in shared(measured, places, limit or Limit()):
                total, right, count = total + lost, right + hits, count + asked
                done += self.together
        seconds = (limit.clock() - start) * len(self.spans) / min(done, len(self.spans)) if limit else 0.0
        complete = done >= len(self.spans)
        return Measurement(gap_scores(total, right, count), complete=complete, seconds=seconds)


def gap_scores(total: float, right: int, count: int) -> dict[str, Score]:
    """The scores of a summed loss and of how many were right."""
    loss = total / max(1, count)
    return {
        "loss": Score(loss, higher=False, digits=4, count=count),
        "perplexity": Score(math.exp(min(loss, 700.0)), higher=False, digits=2, count=count),
        "accuracy": Score(right / max(1, count), digits=4, count=count),
    }


def tokenizer_for(folder: Path, documents: list[Document], config: Config, base: Loaded | None) -> Tokenizer:
    """The base model's tokenizer, the one this run has learned before, or a new one."""
    texts = (part.text for part in parts(documents))
    return run_tokenizer(folder, base, lambda: RunningText.learn(texts, vocab_size=config.text.vocab_size))


def lesson_for(job: Job, how: Any) -> Lesson:
    """What a run works with; `how` is the task's own table of the config."""
    data: Running = job.examples
    kept, held = data.split()
    tokenizer = tokenizer_for(job.folder, kept, job.config, job.base)
    config = job.config
    size = config.model.vocab_size or tokenizer.vocab_size
    dropout = config.model.dropout if config.model.dropout >= 0 else 0.1
    config = merge(config, {"model.vocab_size": size, "model.dropout": dropout})
    made = {
        name: open_tokens(documents, tokenizer, job.folder / "store" / name)
        for name, documents in (("train", kept), ("valid", held))
        if documents
    }
    rows = {
        name: Rows(store[IDS].values, tokenizer, how.share, config.train.seed) for name, store in made.items()
    }
    feed = HiddenFeed(rows["train"], how.length, config.train)
    tokens = made["train"].report["tokens"]
    job.reporter.said(
        f"{data.train.summary()}; {tokens:,} tokens of {tokenizer.vocab_size:,} kinds, "
        f"{feed.count(0):,} batches an epoch"
    )
    names = " + ".join(path.name for path in data.valid.paths) if data.valid else "held-out text"
    return Lesson(
        config,
        feed,
        Gaps(config.train.label_smoothing),
        GapJudge(rows["valid"], how.length) if "valid" in rows else None,
        files={"tokenizer.json": tokenizer.to_json().encode()},
        data=[data.train.summary(), f"{tokens:,} tokens; {how.share:.0%} of the words were hidden"],
        measured_on=f"{names} (validation)",
    )


def evaluation(folder: Path, texts: Texts, device: torch.device | str, *, length: int = 0) -> Evaluation:
    """The scores of a folder on files of running text, all of it, in rows of `length`; 0: masked.length."""
    loaded, rows = _opened(folder, texts, device, length)
    found = rows.measure(loaded.model, device, None)
    return Evaluation(found.scores, {"tokens": found.judge.count})


def judge(folder: Path, texts: Texts, limit: int) -> Judge:
    """A folder's model, and what its gaps cost in the first `limit` rows of a text; perplexity first."""
    loaded, rows = _opened(folder, texts, "cpu")
    rows.spans = rows.spans[:limit]

    def measure() -> dict[str, Score]:
        found = rows.measure(loaded.model, "cpu", None).scores
        return {name: found[name] for name in ("perplexity", "accuracy", "loss")}

    return Judge(loaded.model, measure, f"{len(rows.spans):,} rows")


def _opened(
    folder: Path, texts: Texts, device: torch.device | str, length: int = 0
) -> tuple[Loaded, GapJudge]:
    """The model of a folder, and what judges it on every row of a text."""
    from regard.tasks.masked import MaskedConfig

    documents = texts.documents  # what is wrong with them is said before the model is loaded
    loaded = load_folder(folder, device=device)
    how = loaded.config.of(MaskedConfig)
    length = length or how.length
    length = min(length, getattr(loaded.model, "max_length", None) or length)
    with TemporaryDirectory(prefix="regard-") as place:
        store = open_tokens(documents, loaded.tokenizer, Path(place) / "tokens")
        rows = Rows(np.array(store[IDS].values), loaded.tokenizer, how.share, 1)
    found = GapJudge(rows, length)
    found.spans = cut_rows(len(rows.ids), length - FRAME)
    return loaded, found
