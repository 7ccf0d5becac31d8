"""From what a person asked for to what the loop needs: config, tokenizer, stores, model.

Each step is done once a run: what a run that was stopped has left in its folder is found and used.
`run.py` calls these in turn.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from regard.atomic import write_text
from regard.config import Config, flatten, merge, read_toml, to_dict
from regard.data.corpus import Corpus
from regard.data.store import Store, open_store
from regard.errors import ModelError, UsageError
from regard.models import build
from regard.models.folder import Loaded
from regard.presets import preset
from regard.text.languages import languages_of
from regard.text.tokenizer import Tokenizer
from regard.training.budget import DEFAULT_MINUTES
from regard.training.feed import Feed, hold_out
from regard.training.metrics import require_tensorboard
from regard.training.progress import Silent
from regard.training.validation import Validation

SHORT_MINUTES = 120.0  # a run without a preset trains the tiny one unless it is given this long

Files = str | Path | Sequence[str | Path] | Corpus
# What a model that is trained further brings with it; another shape would be another model.
_INHERITED = ("model", "attention", "positions", "text", "decode")
_STILL_FREE = ("model.dropout", "attention.dropout", "text.source", "text.target", "decode.")


@dataclass(frozen=True)
class Data:
    """What is trained on and what is validated on."""

    store: Store
    feed: Feed
    validation: Validation | None


def corpus_of(sources: Files, targets: Files | None = None) -> Corpus:
    """One corpus from a path, several, or a ready one."""
    if isinstance(sources, Corpus):
        return sources
    if targets is None:
        return Corpus.of(_paths(sources))
    if isinstance(targets, Corpus):
        raise UsageError("a corpus holds its own targets; give it alone")
    return Corpus(sources=_paths(sources), targets=_paths(targets))


def _paths(files: str | Path | Sequence[str | Path]) -> tuple[Path, ...]:
    return (Path(files),) if isinstance(files, str | Path) else tuple(Path(file) for file in files)


def settle(
    preset_name: str | None, file: Path | None, overrides: Mapping[str, Any] | None, base: Config | None
) -> Config:
    """The config: defaults or the base model's, then preset, file and overrides; its bounds made known."""
    asked = (read_toml(file) if file else {}) | dict(overrides or {})
    if preset_name is None and base is None:
        preset_name = _fitting_preset(asked)
    asked = (preset(preset_name) if preset_name else {}) | asked
    config = Config()
    if base is not None:
        config = replace(config, **{name: getattr(base, name) for name in _INHERITED})
        _refuse_other_shape(asked, base)
    config = merge(config, asked)
    if base is None and "positions.kind" not in asked:
        config = _fitting_positions(config)
    if not (config.train.minutes or config.train.max_steps or config.train.max_epochs):
        config = merge(config, {"train.minutes": DEFAULT_MINUTES})
    _refuse_long_data(config)
    if config.data.max_length > config.decode.max_source:  # what is trained on can be translated
        config = merge(config, {"decode.max_source": config.data.max_length})
    if config.train.tensorboard:
        require_tensorboard()
    return config


def with_languages(config: Config, corpus: Corpus) -> Config:
    """The config with the languages that the names of the files tell, where none were named."""
    if config.text.source or config.text.target:
        return config
    found = languages_of(corpus.parts()[0].paths)
    return merge(config, {"text.source": found[0], "text.target": found[1]}) if found else config


def check_parses(config: Config, corpora: tuple[Corpus, Corpus | None]) -> None:
    """Trees are given where they are read, and nowhere else."""
    wanted = config.positions.kind == "structural"
    for corpus, flag in zip(corpora, ("--parses", "--valid-parses"), strict=True):
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


def _refuse_long_data(config: Config) -> None:
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


def _fitting_preset(asked: Mapping[str, Any]) -> str:
    """The preset that a time budget can fill: a small model learns more in a short time than a larger one."""
    minutes = asked.get("train.minutes", DEFAULT_MINUTES)
    return "tiny" if isinstance(minutes, int | float) and 0 < minutes < SHORT_MINUTES else "small"


def _fitting_positions(config: Config) -> Config:
    """Rotary positions for a Transformer that can have them: it learns more with them, and in less time."""
    shape = config.model
    turned = all(
        (shape.d_model // heads) % 2 == 0 for heads in (shape.n_heads, shape.decoder_heads or shape.n_heads)
    )
    if shape.kind != "transformer" or config.attention.kind != "full" or not turned:
        return config
    return merge(config, {"positions.kind": "rotary"})


def _refuse_other_shape(asked: Mapping[str, Any], base: Config) -> None:
    held = flatten(to_dict(base))
    for key, value in asked.items():
        inherited = key.partition(".")[0] in _INHERITED and not key.startswith(_STILL_FREE)
        if inherited and key in held and held[key] != value:
            raise UsageError(f"{key} is {held[key]} in the model to train further, and cannot become {value}")


def tokenizer_for(folder: Path, corpus: Corpus, config: Config, base: Loaded | None) -> Tokenizer:
    """The base model's tokenizer, the one this run has trained before, or a new one."""
    if base is not None:
        return base.tokenizer
    path = folder / "tokenizer.json"
    if path.exists():
        try:
            return Tokenizer.from_json(path.read_text(encoding="utf-8"))
        except (ModelError, UnicodeDecodeError):
            path.unlink()  # the same lines give the same tokenizer again
    tokenizer = Tokenizer.train(corpus.lines(), config.text.vocab_size)
    write_text(path, tokenizer.to_json())
    return tokenizer


def adopt(folder: Path, prepared: Path) -> None:
    """Take over the tokenizer and the stores that were made for another run on the same data.

    The stores are linked, not copied. One that does not fit is made anew in its place by `data_for`.
    """
    write_text(folder / "tokenizer.json", (prepared / "tokenizer.json").read_text(encoding="utf-8"))
    store = folder / "store"
    if not store.exists():
        store.symlink_to((prepared / "store").resolve(), target_is_directory=True)


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
    corpora: tuple[Corpus, Corpus | None],
    tokenizer: Tokenizer,
    config: Config,
    reporter: Silent,
) -> Data:
    """The stores of the corpora; without a second corpus some pairs of the first are held out."""
    corpus, valid = corpora
    store = open_store(corpus, tokenizer, config.data, folder / "store" / "train")
    reporter.said(f"training data: {store.report.summary()}")
    validation: Validation | None
    if valid is not None:
        held = open_store(valid, tokenizer, config.data, folder / "store" / "valid")
        validation = Validation(held, np.arange(len(held)), tokenizer, config.decode)
        feed = Feed(store, np.arange(len(store)), config.train, specials=tokenizer.specials)
    else:
        rows, held_out = hold_out(store)
        validation = Validation(store, held_out, tokenizer, config.decode) if len(held_out) else None
        feed = Feed(store, rows, config.train, specials=tokenizer.specials)
        what = f"{len(held_out):,} of them held out" if len(held_out) else "too few to hold any out"
        reporter.said(f"no validation files given: {what}")
    reporter.said(
        f"batches: {feed.count(0):,} an epoch, of up to {config.train.batch_tokens:,} tokens, "
        f"{feed.sampler.padding(0):.1%} padding"
    )
    return Data(store, feed, validation)


def model_for(config: Config, base: Loaded | None) -> nn.Module:
    """A fresh model, the same for the same seed, or one with the base model's weights."""
    torch.manual_seed(config.train.seed)
    model = build(config)
    if base is not None:
        model.load_state_dict(base.model.state_dict())
    return model
