"""From running text to a lesson: settings that follow from it, tokenizer, tokens, rows.

Each step is done once a run: what a run that was stopped has left in its folder is found and used. Called by
the task (`__init__.py`); before this file: `regard.data`; after it: `regard.training.run`.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from regard.config import Config, merge
from regard.data.columns import Columns
from regard.data.rows import IDS, RowFeed, open_tokens
from regard.data.texts import Document, Running, parts
from regard.errors import UsageError
from regard.tasks.language.feed import RowBatch, row_batch
from regard.tasks.language.validation import Validation
from regard.text.running import RunningText
from regard.text.tokenizer import Tokenizer
from regard.training.lesson import Job, Lesson, run_tokenizer
from regard.training.loss import token_loss
from regard.training.objective import Loss, Objective

NEEDED = 200  # steps of a whole run, below which little is learned
LONG_MINUTES = 15.0  # from here on a larger model learns more than a smaller one that reads more
PLENTY = 20_000_000  # tokens that no run here reads often enough to know by heart
LITTLE = 4_000_000  # tokens that a long run does know by heart

# What suits running text, found on characters of Shakespeare (docs/log.md): pairs of neighbours in a table,
# few rows in a batch; and a size that the minutes can fill.
RECIPE: dict[str, Any] = {
    "positions.kind": "rotary",
    "model.bigrams": 8192,
    "train.label_smoothing": 0.0,
}
SMALL: dict[str, Any] = {
    "model.decoder_layers": 4,
    "model.d_model": 128,
    "model.n_heads": 4,
    "model.d_ff": 512,
    "data.context": 128,
    "train.batch_tokens": 1024,
}
LARGE: dict[str, Any] = {
    "model.decoder_layers": 6,
    "model.d_model": 256,
    "model.n_heads": 8,
    "model.d_ff": 1024,
    "data.context": 256,
    "train.batch_tokens": 2048,
}


class Next(Objective):
    """Each token after those before it."""

    def __init__(self, label_smoothing: float) -> None:
        self.label_smoothing = label_smoothing

    def losses(self, model: Any, batch: RowBatch) -> Iterator[Loss]:
        """One loss."""
        hidden = model(batch.inputs)  # (B, T, D)
        smoothing = self.label_smoothing
        yield Loss(token_loss(model, hidden, batch.goals, batch.mask, label_smoothing=smoothing))


def fitting(config: Config, asked: Mapping[str, Any], base: Config | None) -> Config:
    """The config with what suits running text, where nothing else was asked for."""
    size = LARGE if config.train.minutes >= LONG_MINUTES else SMALL
    wanted = {key: value for key, value in (RECIPE | size).items() if key not in asked}
    if base is not None:
        wanted = {key: value for key, value in wanted.items() if key.startswith("train.")}
    config = merge(config, wanted)
    context, places = config.data.context, config.positions.max_length
    if config.positions.kind == "learned" and context > places:
        raise UsageError(f"data.context ({context}) must be at most positions.max_length ({places})")
    return config if "decode.context" in asked else merge(config, {"decode.context": context})


def tokenizer_for(job: Job, documents: list[Document]) -> Tokenizer:
    """The base model's tokenizer, the one this run has learned before, or a new one."""
    text, letters = job.config.text, (part.text for part in parts(documents))
    return run_tokenizer(
        job.folder, job.base, lambda: RunningText.learn(letters, text.units, text.vocab_size)
    )


def lesson_for(job: Job) -> Lesson:
    """What a run works with; what a run that was stopped has left in its folder is found and used."""
    running: Running = job.examples
    kept, held = running.split()
    job.reporter.said(f"training data: {running.train.summary()}")
    tokenizer = tokenizer_for(job, kept)
    config = merge(job.config, {"model.vocab_size": job.config.model.vocab_size or tokenizer.vocab_size})
    train = open_tokens(kept, tokenizer, job.folder / "store" / "train")
    valid = open_tokens(held, tokenizer, job.folder / "store" / "valid") if held else None
    ids = train[IDS].values
    feed = RowFeed(
        len(ids),
        config.data.context,
        partial(row_batch, ids, specials=tokenizer.specials),
        batch_tokens=config.train.batch_tokens,
        seed=config.train.seed,
    )
    _tell(job, train, valid, feed)
    return Lesson(
        with_dropout(config, len(ids)),
        feed,
        Next(config.train.label_smoothing),
        Validation(valid[IDS].values, config.data.context, tokenizer) if valid else None,
        files={"tokenizer.json": tokenizer.to_json().encode()},
        data=[
            f"{running.train.summary()}",
            f"{train.report['tokens']:,} tokens ({config.text.units}) were trained on",
        ],
        measured_on=_measured_on(running),
        needed=NEEDED,
    )


def with_dropout(config: Config, tokens: int) -> Config:
    """The config with a dropout that suits the run, where none was asked for: some if text is read often."""
    if config.model.dropout >= 0:
        return config
    if config.train.minutes < LONG_MINUTES or tokens >= PLENTY:
        return merge(config, {"model.dropout": 0.0})
    return merge(config, {"model.dropout": 0.2 if tokens < LITTLE else 0.1})


def _tell(job: Job, train: Columns, valid: Columns | None, feed: RowFeed[RowBatch]) -> None:
    """What is trained and measured on, for people."""
    running: Running = job.examples
    if running.valid is None:
        what = f"{valid.report['tokens']:,} tokens of it" if valid else "too little text to hold any out"
        job.reporter.said(f"no validation files given: {what}{' held out' if valid else ''}")
    job.reporter.said(
        f"rows: {train.report['tokens']:,} tokens an epoch, in {feed.count(0):,} batches of up to "
        f"{feed.rows} rows of {feed.length}"
    )


def _measured_on(running: Running) -> str:
    if running.valid is None:
        return "held-out text (validation)"
    return f"{' + '.join(path.name for path in running.valid.paths)} (validation)"
