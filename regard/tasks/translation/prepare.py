"""From files of pairs to a lesson: corpus, settings that follow from it, tokenizer, stores.

Each step is done once a run: what a run that was stopped has left in its folder is found and used. Called by
the task (`__init__.py`); before this file: `regard.data`; after it: `regard.training.run`.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import torch

from regard.config import ATTENDING, Config, merge
from regard.data.corpus import Corpus
from regard.data.store import Store, open_store
from regard.errors import DataError, UsageError
from regard.kinds import MODELS
from regard.models import build
from regard.models.folder import Loaded
from regard.process.progress import Reporter
from regard.tasks.translation.feed import PairFeed, hold_out
from regard.tasks.translation.validation import Validation
from regard.text.languages import languages_of
from regard.text.tokenizer import Specials, Tokenizer
from regard.training.budget import DEFAULT_MINUTES
from regard.training.feed import Rows
from regard.training.lesson import Job, Lesson, run_tokenizer
from regard.training.loss import OfPairs

SHORT_MINUTES = 120.0  # a run without a preset trains the tiny one unless it is given this long

NEEDED = 200  # steps of a whole run, below which no preset translates (benchmarks/results/steps.md)


@dataclass(frozen=True)
class Pairs:
    """Pairs to train on, and those to validate on if they were given."""

    train: Corpus
    valid: Corpus | None = None

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files that are trained on."""
        return self.train.paths

    def check(self, *, thorough: bool) -> None:
        """Refuse bad data before anything is changed; a run that goes on has had its data checked."""
        for corpus in (self.train, self.valid):
            if corpus is not None:
                corpus.check_files() if thorough else corpus.check_paths()

    def fingerprints(self) -> dict[str, str]:
        """Of both."""
        prints = {"training data": self.train.fingerprint()}
        return prints if self.valid is None else prints | {"validation data": self.valid.fingerprint()}


@dataclass(frozen=True)
class Data:
    """What is trained on and what is validated on."""

    store: Store
    feed: PairFeed
    validation: Validation | None


def with_languages(config: Config, corpus: Corpus) -> Config:
    """The config with the languages that the names of the files tell, where none were named."""
    if config.text.source or config.text.target:
        return config
    found = languages_of(corpus.parts()[0].paths)
    return merge(config, {"text.source": found[0], "text.target": found[1]}) if found else config


def check_parses(config: Config, pairs: Pairs) -> None:
    """Trees are given where they are read, and nowhere else."""
    wanted = config.positions.kind == "structural"
    for corpus, flag in ((pairs.train, "--parses"), (pairs.valid, "--valid-parses")):
        if corpus is not None and wanted and not corpus.parses:
            raise UsageError(
                f"positions.kind=structural reads dependency trees of {corpus.paths[0]}; "
                f"give them with {flag} F.conllu"
            )
        if corpus is not None and corpus.parses and not wanted:
            raise UsageError(
                f"{flag} is for positions.kind=structural; positions.kind={config.positions.kind} "
                "reads no trees"
            )


def refuse_long_data(config: Config) -> None:
    """Refuse data that the positions or the attention of the model have no place for."""
    longest = config.data.max_length
    bounds = (
        {"positions.max_length": config.positions.max_length} if config.positions.kind == "learned" else {}
    )
    if config.attention.kind == "linformer":
        bounds["attention.max_length"] = config.attention.max_length
    for name, bound in bounds.items():
        if longest > bound:
            raise UsageError(f"data.max_length ({longest}) must be at most {name} ({bound})")


def fitting_preset(asked: Mapping[str, Any]) -> str:
    """The preset that a time budget can fill: a small model learns more in a short time than a larger one."""
    minutes = asked.get("train.minutes", DEFAULT_MINUTES)
    return "tiny" if isinstance(minutes, int | float) and 0 < minutes < SHORT_MINUTES else "small"


def fitting_positions(config: Config) -> Config:
    """Rotary positions for a Transformer that can have them: it learns more with them, and in less time."""
    shape = config.model
    turned = all(
        (shape.d_model // heads) % 2 == 0 for heads in (shape.n_heads, shape.decoder_heads or shape.n_heads)
    )
    if shape.kind not in ATTENDING or config.attention.kind != "full" or not turned:
        return config
    return merge(config, {"positions.kind": "rotary"})


def tokenizer_for(folder: Path, corpus: Corpus, config: Config, base: Loaded | None) -> Tokenizer:
    """The base model's tokenizer, the one this run has learned before, or a new one."""
    return run_tokenizer(folder, base, lambda: Tokenizer.train(corpus.lines(), config.text.vocab_size))


def with_vocabulary(config: Config, tokenizer: Tokenizer) -> Config:
    """The config with the size of the vocabulary in it."""
    size = config.model.vocab_size or tokenizer.vocab_size
    if size < tokenizer.vocab_size:
        raise UsageError(
            f"model.vocab_size ({size}) must be at least the tokenizer's ({tokenizer.vocab_size})"
        )
    return merge(config, {"model.vocab_size": size})


def with_dropout(config: Config, pairs: int) -> Config:
    """The config with a dropout that suits the model and the data, where none was asked for.

    0.125 · ∛(weights per pair / 20), between 0.05 and 0.4: little where the data are plenty, more where a
    model could learn its pairs by heart.
    """
    if config.model.dropout >= 0:
        return config
    with torch.device("meta"):
        weights = sum(weight.numel() for weight in build(config).parameters())
    dropout = 0.125 * (weights / max(1, pairs) / 20) ** (1 / 3)
    return merge(config, {"model.dropout": round(min(0.4, max(0.05, dropout)), 2)})


def data_for(
    folder: Path,
    pairs: Pairs,
    tokenizer: Tokenizer,
    config: Config,
    reporter: Reporter,
) -> Data:
    """The stores of the pairs; where none are given to validate on, some are held out."""
    corpus, valid = pairs.train, pairs.valid
    store = open_store(corpus, tokenizer, config.data, folder / "store" / "train")
    reporter.said(f"training data: {store.report.summary()}")
    judge = objective_for(config, tokenizer.specials, measuring=True)

    def validation_on(held: Store, rows: Rows) -> Validation | None:
        rows = _fitting(judge, held, rows, "validation", reporter)
        return Validation(held, rows, tokenizer, config.decode, judge) if len(rows) else None

    if valid is not None:
        held = open_store(valid, tokenizer, config.data, folder / "store" / "valid")
        validation = validation_on(held, np.arange(len(held)))
        rows = np.arange(len(store))
    else:
        rows, held_out = hold_out(store)
        validation = validation_on(store, held_out)
        what = f"{len(held_out):,} of them held out" if len(held_out) else "too few to hold any out"
        reporter.said(f"no validation files given: {what}")
    rows = _fitting(judge, store, rows, "training", reporter)
    if not len(rows):
        raise DataError(f"there is nothing to learn from: {judge.unfit(len(store), len(store))}")
    feed = PairFeed(store, rows, config.train, specials=tokenizer.specials)
    reporter.said(
        f"batches: {feed.count(0):,} an epoch, of up to {config.train.batch_tokens:,} tokens, "
        f"{feed.sampler.padding(0):.1%} padding"
    )
    return Data(store, feed, validation)


def objective_for(config: Config, specials: Specials, *, measuring: bool = False) -> OfPairs:
    """What the kind of model wants to be taught by; teacher forcing, where it does not say."""
    name = getattr(MODELS[config.model.kind], "objective", "regard.training.loss:Forced")
    module, _, attribute = name.partition(":")
    found: type[OfPairs] = getattr(import_module(module), attribute)
    return found.of(config, specials, measuring=measuring)


def _fitting(objective: OfPairs, store: Store, rows: Rows, what: str, reporter: Reporter) -> Rows:
    """The rows that can be learned from; what is left out is said."""
    fits = objective.fitting(store)[rows]
    if not fits.all():
        reporter.said(f"{what}: {objective.unfit(int((~fits).sum()), len(rows))}")
    return rows[fits]


def lesson_for(job: Job) -> Lesson:
    """What a run works with; what a run that was stopped has left in its folder is found and used."""
    pairs: Pairs = job.examples
    tokenizer = tokenizer_for(job.folder, pairs.train, job.config, job.base)
    config = with_vocabulary(job.config, tokenizer)
    data = data_for(job.folder, pairs, tokenizer, config, job.reporter)
    report, kept = data.store.report, len(data.feed.rows)
    objective = objective_for(config, tokenizer.specials)
    left = int((~objective.fitting(data.store)).sum())
    unfit = [objective.unfit(left, len(data.store))] if left else []
    names = " + ".join(path.name for path in pairs.valid.paths) if pairs.valid else "held-out training pairs"
    return Lesson(
        with_dropout(config, kept),
        data.feed,
        objective,
        data.validation,
        files={"tokenizer.json": tokenizer.to_json().encode()},
        data=[
            f"{report.pairs:,} pairs of lines, of which {kept:,} were trained on",
            *unfit,
            f"{report.src_tokens:,} source and {report.tgt_tokens:,} target tokens",
        ],
        measured_on=f"{names} (validation, greedy)",
        needed=NEEDED,
    )
