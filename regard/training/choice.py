"""`auto` means measured: in which precision and in how many threads this model trains fastest here.

The batches that come next are rehearsed in every way that is open, a lap each in turn, so that what disturbs
one disturbs all; a way that falls behind is left out. `run.py` says what was found and keeps it: what decides
the bits of a run is part of it. `train.precision` and `train.threads` leave nothing to choose.
"""

import copy
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import torch

from regard.config import TrainConfig
from regard.process import machine
from regard.process.cpu import processor
from regard.process.device import autocast, gains_by_bf16
from regard.training.optimizer import build_optimizers
from regard.training.state import State
from regard.training.step import Part, learn
from regard.training.trainer import Clock, Trainer, random_state, set_random_state

LAPS = 3  # batches timed in each way, after one that warms the machine up
BEHIND = (1.5, 1.25)  # times the fastest, after the warm-up and later: this far behind a way is left out
WORTH = 1.05  # times faster: so much must fewer threads gain, for a quieter machine would have use for more
SHARE, LEAST, MOST = 0.05, 2.0, 8.0  # of the run, and seconds, after which no more is tried


@dataclass(frozen=True)
class Way:
    """One way to compute a step."""

    precision: str  # fp32 or bf16
    threads: int

    def __str__(self) -> str:
        return f"{self.precision}, {self.threads} thread{'' if self.threads == 1 else 's'}"


@dataclass(frozen=True)
class Choice:
    """The way that was taken, what it was measured against, and the seconds that a batch takes in it."""

    way: Way
    speeds: Mapping[Way, float]  # targets a second; ways that were not tried are not in it
    seconds: float

    def line(self, unit: str = "tokens") -> str:
        """What was chosen and why, for people; `unit` is what is learned from."""
        others = [f"{speed:,.0f} in {way}" for way, speed in self.speeds.items() if way != self.way]
        against = f" against {', '.join(others)}" if others else ""
        return f"{self.way}: {self.speeds[self.way]:,.0f} {unit}/s{against}"


def open_ways(train: TrainConfig, device: torch.device) -> list[Way]:
    """The ways that the settings, the environment and the machine leave open; the likeliest first."""
    precisions, threads = [train.precision], [train.threads or torch.get_num_threads()]
    if train.precision == "auto" and device.type == "cpu":
        found = machine.facts()
        precisions = sorted(["fp32"] + ["bf16"] * found.bf16, reverse=found.bf16_gain < 1)
    elif train.precision == "auto":
        precisions = ["bf16" if gains_by_bf16(device) else "fp32"]
    if device.type == "cpu" and not train.threads and not machine.set_by_user(machine.THREADS):
        cores = machine.cores()
        threads = sorted({1, (cores + 1) // 2, cores}, reverse=True)
    return [Way(precision, count) for count in threads for precision in precisions]


def race(ways: Sequence[Way], timed: Callable[[Way, int], float], limit: float) -> dict[Way, list[float]]:
    """The seconds of each way, lap by lap, until the limit is reached; `timed` runs a lap.

    The first lap is the warm-up. All run it, and one that runs alone runs all, whatever the limit.
    """
    laps: dict[Way, list[float]] = {way: [timed(way, 0)] for way in ways}
    running = list(ways)
    for lap in range(1, 1 + LAPS):
        best = min(laps[way][-1] for way in running)
        running = [way for way in running if laps[way][-1] <= BEHIND[lap > 1] * best]
        for way in running:
            if len(ways) > 1 and sum(map(sum, laps.values())) > limit:
                return laps
            laps[way].append(timed(way, lap))
    return laps


def judge(laps: Mapping[Way, Sequence[float]], tokens: Sequence[int]) -> Choice:
    """The fastest way; fewer threads only where they gain something."""
    kept = {way: slice(1, len(each)) if len(each) > 1 else slice(1) for way, each in laps.items()}
    seconds = {way: sum(each[kept[way]]) for way, each in laps.items()}
    speeds = {way: sum(tokens[kept[way]]) / max(seconds[way], 1e-9) for way in laps}
    most = max(way.threads for way in laps)
    best = max(speeds, key=lambda way: speeds[way] / (WORTH if way.threads < most else 1))
    return Choice(best, speeds, seconds[best] / len(laps[best][kept[best]]))


def choose(trainer: Trainer, state: State, ways: Sequence[Way]) -> Choice:
    """Rehearse the steps that come next in these ways. It leaves no trace: the optimisers move a copy."""
    optimizers = [] if trainer.shards else _moving_a_copy(trainer)
    buffers = [(buffer, buffer.clone()) for buffer in trainer.model.buffers()]  # a forward pass may move them
    random, count = random_state(trainer.device), trainer.feed.count(state.epoch)
    batches = [
        trainer.feed.batch(state.epoch, (state.position + lap) % count).to(trainer.device)
        for lap in range(1 + LAPS)
    ]

    def timed(way: Way, lap: int) -> float:
        with taking(trainer, way), autocast(trainer.device, way.precision):
            clock = Clock()
            for optimizer in optimizers:
                optimizer.step()
            moving, clock = clock(), Clock()
            learn(trainer, Part([batches[lap]], batches[lap].targets), None)
            return clock() + moving / trainer.config.accumulate

    choice = decide(ways, timed, [batch.targets for batch in batches], lambda lap: allowance(trainer, lap))
    trainer.forget_gradients()
    for buffer, value in buffers:
        buffer.copy_(value)
    set_random_state(random, trainer.device)
    return choice


def _moving_a_copy(trainer: Trainer) -> list[torch.optim.Optimizer]:
    """Optimisers like the trainer's, of a copy of the model with gradients of some kind."""
    twin = copy.deepcopy(trainer.model)
    for weight in twin.parameters():
        weight.grad = weight.detach().clone()
    return build_optimizers(twin, trainer.config)


def decide(
    ways: Sequence[Way],
    timed: Callable[[Way, int], float],
    tokens: Sequence[int],
    allowed: Callable[[float], float],
) -> Choice:
    """Race the precisions in all threads, then the better one in fewer, as far as time allows.

    `allowed` are the seconds that it may take where a lap takes so many; `tokens` are those of the laps.
    """
    warm = timed(ways[0], 0)  # the process itself warms up, too
    left = allowed(warm) - warm
    first = [way for way in ways if way.threads == ways[0].threads]
    laps = race(first if left > 0 else first[:1], timed, left)
    choice = judge(laps, tokens)
    left -= sum(map(sum, laps.values()))
    fewer = [
        way for way in ways if way.threads < choice.way.threads and way.precision == choice.way.precision
    ]
    if not fewer or left <= 0:
        return choice
    again = judge(race([choice.way, *fewer], timed, left), tokens)
    return replace(again, speeds={**choice.speeds, **again.speeds})


def allowance(trainer: Trainer, lap: float) -> float:
    """Seconds that choosing may take in a run whose batches take `lap` seconds."""
    budget = trainer.budget
    batches = budget.steps * budget.accumulate or budget.epochs * trainer.feed.count(0)
    whole = min(budget.seconds or math.inf, batches * lap or math.inf)
    return min(MOST, max(LEAST, SHARE * whole))


@contextmanager
def taking(trainer: Trainer, way: Way) -> Iterator[None]:
    """The trainer computes this way inside the block."""
    config, threads = trainer.config, torch.get_num_threads()
    trainer.config = replace(config, precision=way.precision, threads=way.threads)
    torch.set_num_threads(way.threads)
    try:
        yield
    finally:
        trainer.config = config
        torch.set_num_threads(threads)


def here() -> str:
    """What bits depend on beside the way: the processor, and what torch is held to on it."""
    held = [
        f"{name}={os.environ[name]}"
        for name in (machine.ISA, machine.MKL, machine.ATEN)
        if name in os.environ
    ]
    units = torch.backends.cpu.get_cpu_capability()
    return ", ".join([f"{processor().name} ({units})", f"torch {torch.__version__}", *held])


def remember(way: Way) -> dict[str, Any]:
    """The way and where it was chosen, for run.json."""
    return {"precision": way.precision, "threads": way.threads, "machine": here()}


def recall(chosen: Mapping[str, Any]) -> tuple[Way | None, str]:
    """The way that a run began with, if it is where it began; else a line that says what that means."""
    if not chosen:
        return None, ""
    if chosen["machine"] == here():
        return Way(str(chosen["precision"]), int(chosen["threads"])), ""
    return None, (
        f"this run began on {chosen['machine']} and goes on on {here()}: "
        "its weights will not be bit for bit those of a run that stayed"
    )
