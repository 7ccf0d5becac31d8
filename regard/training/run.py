"""`regard.train`: from files of pairs to a model folder, in one call that can be killed and repeated.

corpus -> tokenizer -> store -> model -> loop -> folder. The same call on the same folder goes on where
it stopped; on a finished one it does nothing; another call on it is refused.
"""

import hashlib
import math
import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypedDict, Unpack

import torch

from regard import __version__
from regard.atomic import remove_parts, write_text
from regard.config import Config
from regard.data.corpus import Corpus
from regard.errors import UsageError
from regard.models.card import Facts, Measured, write_card
from regard.models.folder import Loaded
from regard.models.folder import load as load_folder
from regard.models.folder import save as save_folder
from regard.text.languages import language_name
from regard.text.tokenizer import Tokenizer
from regard.training import prepare
from regard.training.allocator import keep_freed_memory
from regard.training.averaging import holding
from regard.training.checkpoint import newest
from regard.training.device import pick_device
from regard.training.forecast import forecast
from regard.training.lock import locked
from regard.training.loop import train_loop
from regard.training.memory import memory_of
from regard.training.metrics import METRICS, Metrics, read_metrics
from regard.training.prepare import Data, Files
from regard.training.progress import Silent, build_reporter, duration
from regard.training.state import State
from regard.training.trainer import Clock, Trainer, unpack
from regard.training.workspace import CHECKPOINTS, Run, describe, make, read_run, refuse_foreign, write_run
from regard.training.workspace import prepare as prepare_folder


class Options(TypedDict, total=False):
    """What `train` takes beside its own parameters."""

    config_file: str | Path | None  # TOML, laid over the preset
    fresh: bool  # start over, whatever the folder holds of ours
    device: str | None  # found by itself if not named
    quiet: bool
    prepared: str | Path | None  # a folder with a tokenizer and token stores of the same data, to share
    tokenizer: Tokenizer | None  # to begin with, instead of one that is learned from the data
    origin: str  # where the data come from, for the card


@dataclass(frozen=True)
class Result:
    """How a run ended; `valid_loss` and `valid_bleu` are None where nothing could be held out."""

    folder: Path
    steps: int
    epochs: float
    seconds: float
    valid_loss: float | None
    valid_bleu: float | None
    ended: str


@dataclass(frozen=True)
class _Job:
    """A run that is under way."""

    folder: Path
    corpora: tuple[Corpus, Corpus | None]
    config: Config
    base: Loaded | None
    device: torch.device
    reporter: Silent
    clock: Clock
    origin: str = ""


def train(
    sources: Files,
    targets: Files | None = None,
    *,
    out: str | Path,
    valid: Files | None = None,
    preset: str | None = None,
    overrides: Mapping[str, Any] | None = None,
    start_from: str | Path | None = None,
    **options: Unpack[Options],
) -> Result:
    """Train a translator on pairs of lines and leave it in the folder `out`.

    `sources` and `targets` are aligned files (one or several, plain or gzip); `sources` alone is a TSV
    file. `valid` is a TSV file or a source and a target file; without it some pairs are held out.
    `overrides` are dotted config keys: {"train.minutes": 15}. `start_from` is a model folder to train
    further. Stopped in any way, the same call goes on where it was.

    >>> import tempfile
    >>> place = tempfile.TemporaryDirectory()
    >>> folder = Path(place.name)
    >>> _ = (folder / "pairs.tsv").write_text("good day\\tguten Tag\\ngood night\\tgute Nacht\\n")
    >>> settings = {"train.max_steps": 3}
    >>> train(folder / "pairs.tsv", out=folder / "model", preset="tiny", overrides=settings, quiet=True).steps
    3
    >>> place.cleanup()
    """
    clock = Clock()
    folder = Path(out)
    device = pick_device(options.get("device"))
    corpora = prepare.corpus_of(sources, targets), prepare.corpus_of(valid) if valid is not None else None
    if start_from is not None and Path(start_from).resolve() == folder.resolve():
        raise UsageError(f"{folder} cannot be trained further into itself; choose another folder")
    refuse_foreign(folder)
    _check_data(folder, corpora, fresh=options.get("fresh", False))
    base = load_folder(Path(start_from)) if start_from is not None else None
    file = options.get("config_file")
    config = prepare.settle(preset, Path(file) if file else None, overrides, base.config if base else None)
    config = prepare.with_languages(config, corpora[0])
    prepare.check_parses(config, corpora)
    wanted = describe(config, _fingerprints(corpora, start_from, options.get("tokenizer")))
    keep_freed_memory()
    make(folder)
    with locked(folder), build_reporter(quiet=options.get("quiet", False)) as reporter:
        run = prepare_folder(folder, wanted, fresh=options.get("fresh", False))
        if run.finished:
            reporter.said(
                f"{folder} is finished; use --fresh to train it anew, or --from to train it further"
            )
            return Result(**(run.result | {"folder": folder}))
        if shared := options.get("prepared"):
            prepare.adopt(folder, Path(shared))
        if (given := options.get("tokenizer")) is not None:
            write_text(folder / "tokenizer.json", given.to_json())
        origin = options.get("origin", "")
        return _finish(_Job(folder, corpora, config, base, device, reporter, clock, origin), run)


def _check_data(folder: Path, corpora: tuple[Corpus, Corpus | None], *, fresh: bool) -> None:
    """Refuse bad data before anything is changed; a run that goes on has had its data checked."""
    for corpus in corpora:
        if corpus is not None:
            if fresh or read_run(folder) is None:
                corpus.check_files()
            else:
                corpus.check_paths()


def _fingerprints(
    corpora: tuple[Corpus, Corpus | None], start_from: str | Path | None, tokenizer: Tokenizer | None
) -> dict[str, str]:
    names = ("training data", "validation data")
    prints = {name: c.fingerprint() for name, c in zip(names, corpora, strict=True) if c is not None}
    if start_from is not None:
        with (Path(start_from) / "model.safetensors").open("rb") as file:
            prints["model to train further"] = hashlib.file_digest(file, "sha256").hexdigest()
    if tokenizer is not None:
        prints["vocabulary"] = hashlib.sha256(tokenizer.to_json().encode()).hexdigest()
    return prints


def _finish(job: _Job, run: Run) -> Result:
    """Everything from the tokenizer to the folder."""
    remove_parts(job.folder)
    tokenizer = prepare.tokenizer_for(job.folder, job.corpora[0], job.config, job.base)
    config = prepare.with_vocabulary(job.config, tokenizer)
    data = prepare.data_for(job.folder, job.corpora, tokenizer, config, job.reporter)
    config = prepare.with_dropout(config, len(data.feed.rows))
    trainer = Trainer(
        prepare.model_for(config, job.base),
        config.train,
        data.feed,
        data.validation,
        job.folder / CHECKPOINTS,
        job.device,
        job.reporter,
    )
    state = _resume(job, trainer)
    if not state.ended:
        with Metrics(job.folder, step=state.step, tensorboard=config.train.tensorboard) as metrics:
            if memory := memory_of(trainer):
                job.reporter.said(memory.line())
            job.reporter.said(f"{_size(trainer)}; {forecast(trainer, state)}")
            train_loop(trainer, state, metrics)
    result = Result(
        job.folder,
        state.step,
        round(state.epoch + state.position / data.feed.count(state.epoch), 3),
        round(state.seconds, 1),
        state.valid_loss,
        state.valid_bleu,
        state.ended,
    )
    card = _card(job, config, data, trainer, state)
    with holding(trainer.weights, trainer.final_weights()):
        save_folder(job.folder, config=config, model=trainer.model, tokenizer=tokenizer, card=card)
    run.finished, run.result = True, asdict(result) | {"folder": ""}
    write_run(job.folder, run)
    job.reporter.said(_farewell(result, trainer.clock()))
    return result


def _resume(job: _Job, trainer: Trainer) -> State:
    """The state to begin with: that of the newest checkpoint, or that of a new run."""
    checkpoint = newest(trainer.folder)
    if checkpoint is None:
        trainer.clock = job.clock
        return State(seconds=job.clock(), began=job.clock())
    state = unpack(trainer, checkpoint)
    used = [state.seconds]
    if trainer.budget.seconds:  # what was trained after the checkpoint is lost, its time is spent
        used += [record.get("seconds", 0.0) for record in read_metrics(job.folder / METRICS)]
    trainer.clock = Clock(max(used) + job.clock())
    job.reporter.said(f"going on from step {state.step:,}")
    return state


def _size(trainer: Trainer) -> str:
    count = sum(weight.numel() for weight in trainer.weights)
    return f"model: {count / 1e6:.1f} million weights on {trainer.device}"


def _card(job: _Job, config: Config, data: Data, trainer: Trainer, state: State) -> str:
    report = data.store.report
    facts = Facts(
        config,
        languages=_languages(config),
        files=[path.name for path in job.corpora[0].paths],
        origin=job.origin,
        pairs=report.pairs,
        kept=len(data.feed.rows),
        source_tokens=report.src_tokens,
        target_tokens=report.tgt_tokens,
        parameters=sum(weight.numel() for weight in trainer.weights),
        steps=state.step,
        epochs=state.epoch + state.position / data.feed.count(state.epoch),
        seconds=state.seconds,
        machine=f"{trainer.device} with {torch.get_num_threads()} threads, {platform.machine()}",
        version=f"{__version__}, torch {torch.__version__}",
        scores=_scores(job, state),
    )
    return write_card(facts, folder=str(job.folder))


def _languages(config: Config) -> tuple[str, str] | None:
    """The names of the languages, if they are known."""
    codes = config.text.source, config.text.target
    return (language_name(codes[0]), language_name(codes[1])) if all(codes) else None


def _scores(job: _Job, state: State) -> list[Measured]:
    if state.valid_bleu is None:
        return []
    valid = job.corpora[1]
    name = "held-out training pairs" if valid is None else " + ".join(path.name for path in valid.paths)
    return [
        Measured(
            f"{name} (validation, greedy)",
            state.valid_bleu,
            state.valid_chrf,
            state.signature,
            state.valid_pairs,
        )
    ]


def _farewell(result: Result, seconds: float) -> str:
    score = "" if result.valid_bleu is None else f", validation BLEU {result.valid_bleu:.1f} (greedy)"
    why = "" if math.isclose(result.epochs, 0) else f" ({result.epochs:.1f} epochs)"
    return f"{result.steps:,} steps{why} in {duration(seconds)}{score}; the model is in {result.folder}"
