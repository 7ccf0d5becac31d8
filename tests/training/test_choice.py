import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from command import environment

from regard.config import TrainConfig
from regard.process import machine
from regard.process.cores import Cores
from regard.tasks.train import train
from regard.training import choice as module
from regard.training.choice import (
    BEHIND,
    LAPS,
    Choice,
    Way,
    allowance,
    choose,
    decide,
    open_ways,
    recall,
    remember,
    taking,
)
from regard.training.run import Result
from regard.training.state import State

CPU = torch.device("cpu")
FP32, BF16, ONE = Way("fp32", 2), Way("bf16", 2), Way("fp32", 1)
TOKENS = [7, 11, 13, 17]


def decided(costs: dict[Way, float], limit: float = 1e9) -> tuple[Choice, list[tuple[Way, int]]]:
    """What is chosen where a lap takes a second a token times the cost of its way; which laps were run."""
    run: list[tuple[Way, int]] = []

    def timed(way: Way, lap: int) -> float:
        run.append((way, lap))
        return costs[way] * TOKENS[lap]

    return decide(list(costs), timed, TOKENS, lambda lap: limit), run


@pytest.mark.parametrize("best", [FP32, BF16, ONE])
def test_the_fastest_wins_and_the_line_says_against_what(best: Way) -> None:
    costs = {FP32: 0.12, BF16: 0.14, ONE: 0.14, Way("bf16", 1): 0.14}
    found, _ = decided(costs | {best: 0.1})
    assert found.way == best
    assert found.seconds == pytest.approx(0.1 * sum(TOKENS[1:]) / LAPS)
    assert found.line().startswith(f"{best}: 10 tokens/s against ")
    assert f"7 in {BF16 if best != BF16 else Way('bf16', 1)}" in found.line()


def test_fewer_threads_must_gain_something() -> None:
    assert decided({FP32: 1.0, ONE: 0.97})[0].way == FP32
    assert decided({FP32: 1.0, ONE: 0.94})[0].way == ONE
    assert decided({FP32: 1.0, BF16: 0.97})[0].way == BF16


def test_who_falls_behind_is_left_out() -> None:
    other = Way("tf32", 2)
    costs = {FP32: 1.0, BF16: BEHIND[0] + 0.01, other: BEHIND[1] + 0.01}
    found, run = decided(costs)
    assert [sum(way == each for way, _ in run) for each in costs] == [1 + 1 + LAPS, 1, 2]
    assert found.speeds == pytest.approx({FP32: 1, BF16: 1 / 1.51, other: 1 / 1.26})


def test_no_more_is_tried_than_there_is_time_for() -> None:
    costs = {FP32: 1.0, BF16: 0.9, Way("bf16", 1): 0.1}
    assert decided(costs, limit=0.0)[0].speeds.keys() == {FP32}  # the likeliest, unseen
    assert decided(costs, limit=8.0)[0].way == BF16  # a warm-up each
    assert decided(costs, limit=8.0)[1] == [(FP32, 0), (FP32, 0), (BF16, 0)]
    assert decided(costs, limit=200.0)[0].way == Way("bf16", 1)
    assert [lap for _, lap in decided({FP32: 1.0}, limit=0.0)[1]] == [0, 0, 1, 2, 3]  # for the forecast


@pytest.mark.parametrize("bf16", [True, False])
def test_what_is_set_leaves_nothing_to_choose(monkeypatch: pytest.MonkeyPatch, bf16: bool) -> None:
    facts = machine.Facts(tiles=False, bf16=bf16, bf16_gain=0.5 * bf16, cores=6, ceiling={})
    monkeypatch.setattr(machine, "facts", lambda: facts)
    monkeypatch.setattr(machine, "cores", lambda: 6)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert open_ways(TrainConfig(precision="bf16", threads=5), CPU) == [Way("bf16", 5)]
    assert open_ways(TrainConfig(precision="fp32"), CPU) == [Way("fp32", n) for n in (6, 3, 1)]
    both = ["fp32"] + ["bf16"] * bf16
    assert open_ways(TrainConfig(), CPU) == [Way(p, n) for n in (6, 3, 1) for p in both]
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    assert open_ways(TrainConfig(), CPU) == [Way(p, torch.get_num_threads()) for p in both]


def test_a_rehearsal_in_all_ways_leaves_no_trace(toy: Any, tmp_path: Path) -> None:
    trainer, state = toy.trainer(tmp_path, train__max_steps=9), State()
    before, random, config = [w.clone() for w in trainer.weights], torch.get_rng_state(), trainer.config
    threads = torch.get_num_threads()
    ways = [ONE, *([Way("bf16", 1)] if machine.facts().bf16 else [])]
    found = choose(trainer, state, ways)
    assert found.seconds > 0
    assert found.way in found.speeds
    assert all(map(torch.equal, before, trainer.weights))
    assert all(weight.grad is None for weight in trainer.weights)
    assert torch.equal(torch.get_rng_state(), random)
    assert (state, trainer.config, torch.get_num_threads()) == (State(), config, threads)
    with taking(trainer, Way("bf16", 3)):
        assert (trainer.config.precision, torch.get_num_threads()) == ("bf16", 3)


def test_what_a_forward_pass_counts_is_given_back(toy: Any, tmp_path: Path) -> None:
    trainer = toy.trainer(tmp_path, train__max_steps=9)
    trainer.model.register_buffer("passes", torch.zeros(1))

    def count(model: Any, given: Any) -> None:
        model.passes += 1

    trainer.model.register_forward_pre_hook(count)
    found = choose(trainer, State(), [ONE])
    assert found.way == ONE
    assert float(trainer.model.passes) == 0
    trainer.objective.losses(trainer.model, trainer.feed.batch(0, 0)).__next__()
    assert float(trainer.model.passes) == 1  # the hook does count


@pytest.mark.parametrize(
    ("bounds", "most"),
    [
        ({"train__minutes": 0.5}, 2),
        ({"train__minutes": 2.0}, 6),
        ({"train__minutes": 60.0}, 8),
        ({"train__max_steps": 500, "train__accumulate": 2}, 5),
        ({"train__max_steps": 50}, 2),
        ({"train__max_epochs": 200}, 6),
    ],
)
def test_choosing_takes_a_small_part_of_the_run(
    toy: Any, tmp_path: Path, bounds: dict[str, Any], most: float
) -> None:
    assert allowance(toy.trainer(tmp_path, **bounds), 0.1) == pytest.approx(most)


def test_a_run_remembers_its_way_on_this_machine_alone() -> None:
    kept = json.loads(json.dumps(remember(BF16)))
    assert recall(kept) == (BF16, "")
    assert recall({}) == (None, "")
    way, line = recall(kept | {"machine": "Some Other (AVX2), torch 1.0"})
    assert way is None
    assert "began on Some Other (AVX2), torch 1.0 and goes on on" in line
    assert "not be bit for bit" in line


@pytest.fixture
def asked(toy_settings: dict[str, object]) -> dict[str, object]:
    measured = {"train.precision": "auto", "train.threads": 0}
    return toy_settings | measured | {"train.max_steps": 7, "train.valid_every": 100}


def rigged(monkeypatch: pytest.MonkeyPatch, best: Way) -> list[list[Way]]:
    """From now on `best` wins every race that it runs in; grows by the ways of each race."""
    races: list[list[Way]] = []

    def run(ways: Any, timed: Any, *others: Any) -> Choice:
        races.append(list(ways))
        assert timed(ways[0], 0) > 0  # it can really be run
        return original(ways, lambda way, lap: 0.01 if way == best else 0.02, *others)

    original = decide
    monkeypatch.setattr(module, "decide", run)
    return races


def told(result: Result) -> list[tuple[int, int]]:
    lines = (result.folder / "metrics.jsonl").read_text().splitlines()
    return [(line["bits"], line["threads"]) for line in map(json.loads, lines)]


def test_a_run_keeps_what_it_began_with_whatever_is_faster_later(
    toy_files: tuple[Path, Path],
    tmp_path: Path,
    asked: dict[str, object],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def die(trainer: Any, state: Any) -> None:
        if state.step == 4:
            raise MemoryError
        original(trainer, state)

    from regard.training import loop

    original, before = loop.take_step, torch.get_num_threads()
    monkeypatch.setattr(machine, "cores", lambda: 3)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    begun = Way("fp32", 3)
    rigged(monkeypatch, begun)
    with monkeypatch.context() as patch:
        patch.setattr(loop, "take_step", die)
        with pytest.raises(MemoryError):
            train(*toy_files, out=tmp_path / "out", overrides=asked)
    assert "fp32, 3 threads: " in capsys.readouterr().err
    assert torch.get_num_threads() == before
    races = rigged(monkeypatch, Way("fp32", 1))
    result = train(*toy_files, out=tmp_path / "out", overrides=asked)
    assert races == [[begun]]
    assert set(told(result)) == {(32, 3)}
    assert "in fp32 with 3 threads" in (result.folder / "README.md").read_text()
    assert "bit for bit" not in capsys.readouterr().err


def test_on_another_machine_it_says_that_bits_differ_and_chooses_anew(
    toy_files: tuple[Path, Path],
    tmp_path: Path,
    asked: dict[str, object],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from regard.training import loop

    asked = asked | {"train.precision": "fp32"}
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(machine, "cores", lambda: 2)
    with monkeypatch.context() as patch:
        patch.setattr(module, "here", lambda: "Another (SVE), torch 9")
        rigged(patch, Way("fp32", 2))
        patch.setattr(loop, "report", lambda *others, **more: (_ for _ in ()).throw(MemoryError))
        with pytest.raises(MemoryError):
            train(*toy_files, out=tmp_path / "out", overrides=asked)
    rigged(monkeypatch, Way("fp32", 1))
    result = train(*toy_files, out=tmp_path / "out", overrides=asked)
    assert "this run began on Another (SVE), torch 9 and goes on on" in capsys.readouterr().err
    assert set(told(result)) == {(32, 1)}


def test_a_quota_leaves_as_many_threads_as_it_pays_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "count_cores", lambda: Cores(present=96, allowed=96, quota=1.5))
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert open_ways(TrainConfig(precision="fp32"), CPU) == [FP32, ONE]


ALONE = """
import os
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
import torch
from regard.config import TrainConfig
from regard.training.choice import open_ways
print({way.threads for way in open_ways(TrainConfig(precision="fp32"), torch.device("cpu"))})
"""


def test_one_core_is_one_thread() -> None:
    """As under `taskset -c 0`."""
    free = {name: value for name, value in environment().items() if name != "OMP_NUM_THREADS"}
    done = subprocess.run(
        [sys.executable, "-c", ALONE], env=free, capture_output=True, text=True, check=False
    )
    assert done.stdout.strip() == "{1}", done.stderr
