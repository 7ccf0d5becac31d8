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
from regard.tasks.translation.mixing import SYNTHETIC, by_file, mixed, tags_of, times
from regard.tasks.translation.validation import Validation, together
from regard.text.directions import Directions
from regard.text.languages import languages_of
from regard.text.tokenizer import Specials, Tokenizer
from regard.training.budget import DEFAULT_MINUTES
from regard.training.feed import Rows
from regard.training.lesson import Job, Lesson, run_tokenizer
from regard.training.loss import OfPairs
from regard.training.objective import Evaluator

SHORT_MINUTES = 120.0  # a run without a preset trains the tiny one unless it is given this long

NEEDED = 200  # steps of a whole run, below which no preset translates (benchmarks/results/steps.md)
LEAVING = (  # afterwards it would be too late
    "positions are rotary: CTranslate2 and ONNX can hold this model, Hugging Face cannot "
    "(--set positions.kind=sinusoidal for that)"
)


@dataclass(frozen=True)
class Pairs:
    """Pairs to train on, and those to validate on if they were given."""

    train: Corpus
    valid: Corpus | None = None
    directions: Directions | None = None  # where there are several languages

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
    validation: Evaluator | None
    counts: dict[str, int]  # pairs that are trained on, by group


def with_languages(config: Config, pairs: Pairs, base: Config | None = None) -> Config:
    """The config with the languages that were named, or that the names of the files tell."""
    if pairs.directions is not None:
        return _with_directions(config, pairs.directions, base)
    if held := Directions.of(config.text):
        raise UsageError(
            f"the model to train further serves {held}; name the pair: --pair {held.name(0)} SRC TGT"
        )
    if config.text.source or config.text.target:
        return config
    found = languages_of(pairs.train.parts()[0].paths)
    return merge(config, {"text.source": found[0], "text.target": found[1]}) if found else config


def _with_directions(config: Config, new: Directions, base: Config | None) -> Config:
    """The config of a model for several pairs; one that is trained further has the tokens that it has."""
    held = Directions.of(base.text) if base is not None else None
    if base is not None and held is None:
        raise UsageError(
            "the model to train further serves one pair; it has no tokens for --pair, begin anew"
        )
    if held is not None and (strange := [code for code in new.targets if code not in held.targets]):
        raise UsageError(f"the model to train further never learned to write {strange[0]}, only {held}")
    every = Directions(tuple(dict.fromkeys((held.pairs if held else ()) + new.pairs)))
    alone = {
        f"text.{side}": codes[0] if len(codes) == 1 else ""
        for side, codes in (("source", every.sources), ("target", every.targets))
    }
    return merge(config, alone | {"text.pairs": " ".join(map("-".join, every.pairs))})


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
    tags = tags_of(corpus)
    found = run_tokenizer(folder, base, lambda: Tokenizer.train(corpus.lines(), config.text.vocab_size, tags))
    if missing := [tag for tag in tags if tag not in found.tags]:
        raise UsageError(f"the vocabulary to begin with has no token {missing[0]}; let the run learn its own")
    return found


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
    held = open_store(valid, tokenizer, config.data, folder / "store" / "valid") if valid else None
    given = held.groups() if held is not None else {}
    judge = objective_for(config, tokenizer.specials, measuring=True)
    groups: dict[str, Rows] = {}
    validations: dict[str, Validation] = {}
    for name, rows in store.groups().items():
        on, measured = held or store, given.get(name, np.arange(0))
        if name not in given and name != SYNTHETIC.name:
            on = store
            rows, measured = hold_out(store, rows, frozenset(tokenizer.tags.values()))
            what = f"{len(measured):,} of them held out" if len(measured) else "too few to hold any out"
            reporter.said(f"{name}: ".lstrip(": ") + f"no validation files given: {what}")
        measured = _fitting(judge, on, measured, "validation", reporter) if len(measured) else measured
        if len(measured):
            validations[name] = Validation(on, measured, tokenizer, config.decode, judge)
        groups[name] = _fitting(judge, store, rows, "training", reporter)
    groups = {name: rows for name, rows in groups.items() if len(rows)}
    if not groups:
        raise DataError(f"there is nothing to learn from: {judge.unfit(len(store), len(store))}")
    if config.data.weights and list(groups) == [""]:
        groups = by_file(groups[""], store.report.parts or [len(store)])
    feed = PairFeed(store, mixed(groups, config.data), config.train, specials=tokenizer.specials)
    reporter.said(
        f"batches: {feed.count(0):,} an epoch, of up to {config.train.batch_tokens:,} tokens, "
        f"{feed.sampler.padding(0):.1%} padding"
    )
    return Data(store, feed, together(validations), {name: len(rows) for name, rows in groups.items()})


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
    report, kept = data.store.report, sum(data.counts.values())
    objective = objective_for(config, tokenizer.specials)
    left = int((~objective.fitting(data.store)).sum())
    unfit = [objective.unfit(left, len(data.store))] if left else []
    names = " + ".join(path.name for path in pairs.valid.paths) if pairs.valid else "held-out training pairs"
    if config.positions.kind == "rotary" and job.base is None:
        job.reporter.said(LEAVING)
    return Lesson(
        with_dropout(config, kept),
        data.feed,
        objective,
        data.validation,
        files={"tokenizer.json": tokenizer.to_json().encode()},
        data=[
            f"{report.pairs:,} pairs of lines, of which {kept:,} were trained on",
            *_told(data.counts, config),
            *unfit,
            f"{report.src_tokens:,} source and {report.tgt_tokens:,} target tokens",
        ],
        measured_on=f"{names} (validation, greedy)",
        needed=NEEDED,
    )


def _told(counts: Mapping[str, int], config: Config) -> list[str]:
    """Of a mixture, what it is made of."""
    if len(counts) < 2:
        return []
    often = times(counts, config.data)
    return [
        f"{name or 'real'}: {count:,} pairs, seen {often[name]:.3g} times an epoch"
        for name, count in counts.items()
    ]
