"""A run: from a task and its examples to a model folder, in one call that can be killed and repeated.

examples -> config -> lesson -> model -> loop -> folder. The same call on the same folder goes on where
it stopped; on a finished one it does nothing; another call on it is refused.
"""

import hashlib
import math
import os
import platform
import socket
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn

from regard import __version__
from regard.atomic import remove_parts, write_bytes
from regard.config import Config, merge
from regard.errors import UsageError
from regard.models import build
from regard.models.card import Facts, Measured
from regard.models.folder import Loaded, load_folder
from regard.models.folder import save as save_folder
from regard.process.allocator import keep_freed_memory
from regard.process.cpu import processor
from regard.process.device import pick_device
from regard.process.lock import locked
from regard.process.progress import build_reporter, duration
from regard.process.waiting import watched
from regard.training.checkpoint import saved_steps
from regard.training.choice import Way, choose, here, open_ways, recall, remember, taking
from regard.training.forecast import forecast
from regard.training.lesson import Examples, Job, Learnable, Lesson
from regard.training.loop import train_loop
from regard.training.metrics import METRICS, Metrics, read_metrics
from regard.training.resume import IN_A_TREE, resume
from regard.training.settle import goes_further, settle
from regard.training.state import State
from regard.training.trainer import Clock, Trainer
from regard.training.workspace import CHECKPOINTS, Run, describe, make, read_run, refuse_foreign, write_run
from regard.training.workspace import prepare as prepare_folder
from regard.training.world import World, joined

STORE = "store"  # the folder of what was made of the examples
_GIVEN = {"tokenizer.json": "vocabulary"}  # what files that are given are called, where data changed


@dataclass(frozen=True)
class Asked:
    """What a run was asked for, beside its task and its examples."""

    out: Path  # the model folder
    preset: str | None = None
    config_file: Path | None = None  # TOML, laid over the preset
    overrides: Mapping[str, Any] = field(default_factory=dict)  # dotted config keys, laid over that
    start_from: Path | None = None  # a model folder to train further
    fresh: bool = False  # start over, whatever the folder holds of ours
    device: str | None = None  # found by itself if not named
    quiet: bool = False
    prepared: Path | None = None  # a folder with stores and files made of the same examples, to share
    given: Mapping[str, bytes] = field(default_factory=dict)  # files of the folder to begin with
    origin: str = ""  # where the data come from, for the card
    finish: float | None = None  # minutes within which a run that has begun is to end, its schedule too


@dataclass(frozen=True)
class Result:
    """How a run ended; `scores` are those of the last validation, none where nothing could be held out."""

    folder: Path
    steps: int
    epochs: float
    seconds: float
    scores: dict[str, float]
    ended: str
    counted: str = "tokens"  # what speed is told in: what its targets are

    @classmethod
    def of(cls, folder: Path, held: Mapping[str, Any]) -> "Result":
        """What run.json holds of a finished run; version 0.1.0 knew two scores by name."""
        old = {name: held.get(f"valid_{name}") for name in ("loss", "bleu")}
        scores = held.get("scores", {name: value for name, value in old.items() if value is not None})
        parts = {name: held[name] for name in ("steps", "epochs", "seconds", "ended")}
        return cls(folder, scores=scores, counted=held.get("counted", cls.counted), **parts)


@dataclass(frozen=True)
class _Run:
    """A run that is under way."""

    task: Learnable
    job: Job
    lesson: Lesson
    trainer: Trainer
    clock: Clock
    origin: str = ""


def train(task: Learnable, examples: Examples, asked: Asked) -> Result:
    """Learn a task from examples and leave the model in a folder. Stopped, the same call goes on."""
    clock = Clock()
    if not all(hasattr(examples, name) for name in ("paths", "check", "fingerprints")):
        raise UsageError(f"task={task.name} read {type(examples).__name__}, which are no Examples")
    with joined() as world, ExitStack() as held:
        with world.together():
            device = _device(asked.device, world)
            base, config = _asked_for(task, examples, asked, world)
        reads = _reads(examples, world)
        with world.together():
            wanted = describe(config, _fingerprints(examples, asked) if reads else {})
        world.same(wanted.settings | wanted.data | {"Regard": __version__, "processor": here()})
        keep_freed_memory()
        with world.together():
            run = _take_folder(asked, wanted, held) if world.first else None
        reporter = held.enter_context(build_reporter(quiet=asked.quiet or not world.first))
        run = run if world.size == 1 else Run(**world.tell(run and asdict(run)))
        assert run is not None
        if run.finished:
            reporter.said(
                f"{asked.out} is finished; "
                "a wider bound goes on with it, --fresh trains it anew, --from further"
            )
            return Result.of(asked.out, run.result)
        job = Job(asked.out, config, examples, base, reporter)
        with world.together(), world.in_turn():
            begun = _begin(task, job, asked, device, clock)
        with world.together():
            begun.trainer.join(world)
        return _finish(begun, run)


def _asked_for(
    task: Learnable, examples: Examples, asked: Asked, world: World
) -> tuple[Loaded | None, Config]:
    """The base model and the config asked for; one process of each machine looks through the data."""
    _refuse_itself(asked)
    refuse_foreign(asked.out)
    if world.local == 0:
        examples.check(thorough=asked.fresh or read_run(asked.out) is None)
    base = load_folder(asked.start_from) if asked.start_from is not None else None
    config = settle(
        task,
        asked.preset,
        asked.config_file,
        asked.overrides,
        examples=examples,
        base=base.config if base else None,
    )
    if asked.finish is not None:
        config = _finishing(config, asked.out, asked.finish)
    if config.train.accumulate < world.size:
        raise UsageError(
            f"train.accumulate ({config.train.accumulate}) must be at least the number of processes "
            f"({world.size}): they share the batches of a step"
        )
    return base, config


def _reads(examples: Examples, world: World) -> bool:
    """Whether this process hashes its data: the first of a machine does, and who was given other files."""
    valid = getattr(examples, "valid", None) or ()
    paths = (*examples.paths, *getattr(valid, "paths", valid))
    mine = [socket.gethostname(), [os.path.realpath(str(path)) for path in paths]]
    first = next(each for each in world.gather(mine) if each[0] == mine[0])
    return world.local == 0 or bool(first != mine)


def _take_folder(asked: Asked, wanted: Run, held: ExitStack) -> Run:
    """The folder's lock until `held` ends, and the run that goes on or begins there."""
    make(asked.out)
    held.enter_context(locked(asked.out))
    run = prepare_folder(asked.out, wanted, fresh=asked.fresh)
    if run.finished:
        return run
    if asked.prepared:
        adopt(asked.out, asked.prepared)
    for name, content in asked.given.items():
        write_bytes(asked.out / name, content)
    remove_parts(asked.out)
    return run


def _device(name: str | None, world: World) -> torch.device:
    """The device that is named, or the best; each process of a machine has a GPU of its own."""
    device = pick_device(name)
    return torch.device("cuda", world.local) if device == torch.device("cuda") and world.size > 1 else device


def _finishing(config: Config, folder: Path, minutes: float) -> Config:
    """The config of a run that ends so many minutes from where it stands, whatever it was bounded by."""
    if not saved_steps(folder / CHECKPOINTS):
        raise UsageError(f"{folder} holds no run that has begun; there is nothing to finish")
    if minutes <= 0:
        raise UsageError(f"--finish ({minutes:g}) must be minutes above 0")
    used = max((each["seconds"] for each in read_metrics(folder / METRICS) if "seconds" in each), default=0.0)
    return merge(config, {"train.minutes": used / 60 + minutes, "train.max_steps": 0, "train.max_epochs": 0})


def _refuse_itself(asked: Asked) -> None:
    """A model is not trained further into its own folder."""
    start_from, folder = asked.start_from, asked.out
    if (
        start_from is not None
        and folder.exists()
        and os.path.realpath(start_from) == os.path.realpath(folder)
    ):
        raise UsageError(f"{folder} cannot be trained further into itself; choose another folder")


def adopt(folder: Path, prepared: Path) -> None:
    """Take over the files and the stores that were made for another run on the same examples.

    The stores are linked, not copied. One that does not fit is made anew in its place.
    """
    for path in prepared.iterdir():
        if path.is_file():
            write_bytes(folder / path.name, path.read_bytes())
    store = folder / STORE
    if not store.exists() and (prepared / STORE).exists():
        store.symlink_to((prepared / STORE).resolve(), target_is_directory=True)


def _fingerprints(examples: Examples, asked: Asked) -> dict[str, str]:
    prints = examples.fingerprints()
    if asked.start_from is not None:
        with (asked.start_from / "model.safetensors").open("rb") as file:
            prints["model to train further"] = hashlib.file_digest(file, "sha256").hexdigest()
    for name, content in asked.given.items():
        prints[_GIVEN.get(name, name)] = hashlib.sha256(content).hexdigest()
    return prints


def _begin(task: Learnable, job: Job, asked: Asked, device: torch.device, clock: Clock) -> _Run:
    """The lesson and the things that learn it; a machine that shares no folder is given its files."""
    make(job.folder)
    for name, content in asked.given.items():
        if not (job.folder / name).exists():
            write_bytes(job.folder / name, content)
    lesson = task.lesson(job)
    if not isinstance(lesson, Lesson):
        raise UsageError(f"task={task.name} gave a {type(lesson).__name__}, not a Lesson")
    trainer = Trainer(
        model_for(task, lesson.config, job.base),
        lesson.config.train,
        lesson.feed,
        lesson.objective,
        lesson.evaluator,
        job.folder / CHECKPOINTS,
        device,
        job.reporter,
        further=goes_further(task.name, lesson.config, job.base.config if job.base else None),
    )
    return _Run(task, job, lesson, trainer, clock, asked.origin)


def model_for(task: Learnable, config: Config, base: Loaded | None) -> nn.Module:
    """A fresh model, the same for the same seed, or one with what its task takes over of the base model."""
    torch.manual_seed(config.train.seed)
    model = build(config)
    if base is not None:
        task.adopt(model, base)
    return model


def _finish(run: _Run, held: Run) -> Result:
    """From the first step, or where it stopped, to the folder."""
    job, lesson, trainer = run.job, run.lesson, run.trainer
    state = resume(trainer, held, run.clock, lesson.files)
    trainer.publish = lambda standing: _publish(run, held, standing)
    if not state.ended:
        with watched():
            _train(run, held, state)
    result = Result(
        job.folder,
        state.step,
        round(state.epoch + state.position / lesson.feed.count(state.epoch), 3),
        round(state.seconds, 1),
        {name: score.value for name, score in state.scores.items()},
        state.ended,
        lesson.objective.sums_over,
    )
    trainer.publish(state)
    if trainer.world.first:
        held.finished, held.result = True, asdict(result) | {"folder": ""}
        write_run(job.folder, held)
    job.reporter.said(_farewell(result, state, trainer.clock()))
    if trainer.further and state.validations and not state.best_step:
        job.reporter.said(_standstill(state))
    return result


def _publish(run: _Run, held: Run, state: State) -> None:
    """Make the folder a model: the one that is had so far, or at the end the one that is kept."""
    job, lesson, trainer = run.job, run.lesson, run.trainer
    with trainer.holding(trainer.final_weights()) as model, trainer.world.together():
        if trainer.world.first:
            card = run.task.card(_facts(run, held, state), str(job.folder))
            save_folder(job.folder, config=lesson.config, model=model, files=lesson.files, card=card)


def _train(run: _Run, held: Run, state: State) -> None:
    """Say what is ahead, then do it in the way that is fastest here, or that the run began with."""
    job, trainer = run.job, run.trainer
    if memory := run.task.memory(trainer, run.lesson.config):
        job.reporter.said(memory)
    kept, moved = recall(held.chosen)
    if moved:
        job.reporter.said(moved)
    ways = [kept] if kept else open_ways(trainer.config, trainer.device)
    if trainer.shards:  # they rehearse in step, and so the likeliest way alone
        ways = [Way(**trainer.world.tell(asdict(ways[0])))]
    choice = choose(trainer, state, ways)
    world, way = trainer.world, Way(**trainer.world.tell(asdict(choice.way)))
    held.chosen = remember(way) | ({"sums": IN_A_TREE} if trainer.in_a_tree else {})
    if world.first:
        write_run(job.folder, held)
    with taking(trainer, way), ExitStack() as opened:
        board = trainer.config.tensorboard
        metrics = Metrics(job.folder, step=state.step, tensorboard=board) if world.first else None
        if metrics is not None:
            opened.enter_context(metrics)
        ahead = forecast(trainer, state, choice.seconds / world.size)
        job.reporter.said(f"{_size(trainer)}; {ahead.line()}")
        if world.size > 1:
            alone = trainer.config.outer_every
            meeting = f", and meet after every {alone} steps" if alone else ""
            job.reporter.said(
                f"{world.size} processes share the {trainer.config.accumulate} batches of a step{meeting}"
            )
        job.reporter.unit = run.lesson.objective.sums_over
        job.reporter.said(choice.line(job.reporter.unit))
        if state.step == 0 and job.base is None and (advice := ahead.advice(run.lesson.needed)):
            job.reporter.said(advice)
        train_loop(trainer, state, metrics)


def _size(trainer: Trainer) -> str:
    cut = f", a shard in each of {trainer.world.size} processes" if trainer.shards else ""
    return f"model: {trainer.parameters / 1e6:.1f} million weights on {trainer.device}{cut}"


def _facts(run: _Run, held: Run, state: State) -> Facts:
    """What the card tells."""
    lesson, trainer = run.lesson, run.trainer
    return Facts(
        lesson.config,
        files=[path.name for path in run.job.examples.paths],
        data=lesson.data,
        origin=run.origin,
        parameters=trainer.parameters,
        steps=state.step,
        epochs=state.epoch + state.position / lesson.feed.count(state.epoch),
        seconds=state.seconds,
        machine=_machine(trainer.device, held),
        version=f"{__version__}, torch {torch.__version__}",
        scores=[Measured(lesson.measured_on, state.scores)] if state.scores else [],
        report=lesson.report() if lesson.report and state.ended else "",
        batches=lesson.objective.fills_with,
        unfinished=not state.ended,
    )


def _machine(device: torch.device, held: Run) -> str:
    """What computed, and how; a run that an older version began has not kept it."""
    kept = held.chosen
    way = f" in {kept['precision']} with {kept['threads']} threads" if kept else ""
    return f"{device}{way}, {processor().name}, {platform.machine()}"


def _standstill(state: State) -> str:
    """What is said of a model that was trained further and was not seen to get better."""
    if state.best is None:
        return (
            "there was no time to measure the model whole, so nobody knows whether it got better; the folder "
            "holds what was trained: compare it with regard evaluate --against, or give it more --minutes"
        )
    return "nothing was better than the model that it began with; the folder holds that one"


def _farewell(result: Result, state: State, seconds: float) -> str:
    score = f", {state.standing.replace('valid', 'validation')}" if state.standing else ""
    why = "" if math.isclose(result.epochs, 0) else f" ({result.epochs:.1f} epochs)"
    return f"{result.steps:,} steps{why} in {duration(seconds)}{score}; the model is in {result.folder}"
