import json
import math
import os
import signal
from pathlib import Path
from typing import Any

import pytest
import torch

from regard.errors import DivergedError
from regard.measure.score import Score
from regard.process.stopping import Stopped
from regard.tasks.translation.validation import Validation
from regard.training import loop, loss, step
from regard.training.checkpoint import newest, read, saved_steps
from regard.training.metrics import Metrics
from regard.training.objective import Limit, Measurement
from regard.training.state import State
from regard.training.step import Part

STEPS = 13


class Killed(BaseException):
    """As sudden as kill -9, as far as a process can do that to itself."""


def kill_before(monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """Die at the start of the step after `step`."""
    original = loop.take_step

    def take_step(trainer: Any, state: State) -> None:
        if state.step == step:
            raise Killed
        original(trainer, state)

    monkeypatch.setattr(loop, "take_step", take_step)


SETTINGS = {
    "adam": {"train__optimizer": "adam"},
    "accumulated": {"train__accumulate": 3, "train__average": "last", "train__average_span": 0.5},
    "muon": {"train__optimizer": "muon", "train__average": "none", "train__patience": 9},
    "epochs": {
        "train__max_steps": 0,
        "train__max_epochs": 3,
        "train__clip": 0.0,
        "train__schedule": "cosine",
    },
}


@pytest.fixture(scope="module", params=SETTINGS)
def uninterrupted(request: Any, toy: Any, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """Settings, and the folder, the trainer and the state of a run with them that nothing disturbed."""
    asked = {"train__max_steps": STEPS} | SETTINGS[request.param]
    folder = tmp_path_factory.mktemp("whole")
    return asked, folder, *toy.run(folder, **asked)


@pytest.mark.parametrize("stop", [1, 4, 10])
def test_a_killed_run_goes_on_bit_for_bit(
    toy: Any, uninterrupted: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: int
) -> None:
    asked, folder, whole, end = uninterrupted
    with monkeypatch.context() as patch:
        kill_before(patch, stop)
        with pytest.raises(Killed):
            toy.run(tmp_path, **asked)
    again, end_again = toy.run(tmp_path, **asked)
    assert all(map(torch.equal, whole.weights, again.weights))
    assert all(map(torch.equal, whole.final_weights(), again.final_weights()))
    assert measured(end) == measured(end_again)
    assert told(folder) == told(tmp_path)


def measured(state: State) -> dict[str, Any]:
    """The numbers of a state that no clock has touched."""
    tree: dict[str, Any] = json.loads(state.to_json())
    timed = ("seconds", "validating", "valid_cost", "window")
    return {key: value for key, value in tree.items() if key not in timed}


def told(folder: Path) -> list[dict[str, Any]]:
    """metrics.jsonl without what the clock said."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [{k: v for k, v in line.items() if k not in ("seconds", "tokens_per_second")} for line in lines]


def test_dropout_is_on_and_validating_draws_nothing_from_it(toy: Any, tmp_path: Path) -> None:
    often, _ = toy.run(tmp_path / "often", train__max_steps=STEPS, train__valid_every=1)
    seldom, _ = toy.run(tmp_path / "seldom", train__max_steps=STEPS, train__valid_every=1000)
    dry, _ = toy.run(tmp_path / "dry", train__max_steps=STEPS, model__dropout=0.0)
    assert all(map(torch.equal, often.weights, seldom.weights))
    assert not all(map(torch.equal, often.weights, dry.weights))


def test_another_seed_is_another_run(toy: Any, tmp_path: Path) -> None:
    one, _ = toy.run(tmp_path / "1", train__max_steps=3)
    two, _ = toy.run(tmp_path / "2", train__max_steps=3, train__seed=2)
    assert not all(map(torch.equal, one.weights, two.weights))


def test_accumulated_batches_give_the_gradient_of_one_large_batch(toy: Any, tmp_path: Path) -> None:
    trainer = toy.trainer(tmp_path, model__dropout=0.0)
    batches = [trainer.feed.batch(0, position) for position in range(3)]
    tokens = sum(batch.targets for batch in batches)
    loop.learn(trainer, Part(batches, tokens), None)
    together = [weight.grad.clone() for weight in trainer.weights]
    trainer.model.zero_grad()
    expected = [torch.zeros_like(weight) for weight in trainer.weights]
    for batch in batches:
        loop.learn(trainer, Part([batch], 1), None)
        for total, weight in zip(expected, trainer.weights, strict=True):
            total += weight.grad
        trainer.model.zero_grad()
    for ours, total in zip(together, expected, strict=True):
        torch.testing.assert_close(ours, total / tokens, rtol=1e-4, atol=1e-6)


def test_every_batch_of_every_epoch_once(toy: Any, tmp_path: Path) -> None:
    trainer, state = toy.trainer(tmp_path, train__accumulate=3, train__max_epochs=2), State()
    steps = []
    while state.epoch < 2:
        steps.append(loop.next_part(trainer, state).batches)
    assert sum(len(step) for step in steps) == trainer.feed.count(0) + trainer.feed.count(1)
    assert all(len(step) == 3 for step in steps[:-1])
    tokens = sum(batch.targets for step in steps for batch in step)
    assert tokens == 2 * int(trainer.feed.sampler.lengths[1].sum())


def poison(monkeypatch: pytest.MonkeyPatch, bad: set[int], value: float = math.nan) -> None:
    """Make the loss of these calls (counted from 1) not finite; those of validation are not counted."""
    original, calls = loss.sequence_loss, [0]

    def sequence_loss(*args: Any, **kwargs: Any) -> torch.Tensor:
        calls[0] += torch.is_grad_enabled()
        found = original(*args, **kwargs)
        return found * value if torch.is_grad_enabled() and calls[0] in bad else found

    monkeypatch.setattr(loss, "sequence_loss", sequence_loss)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_step_that_is_not_finite_is_never_applied(
    toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: float
) -> None:
    trainer, state = toy.trainer(tmp_path, train__max_steps=9), State()
    poison(monkeypatch, {2}, value)
    loop.take_step(trainer, state)
    before = [weight.detach().clone() for weight in trainer.weights]
    average = [mean.clone() for mean in trainer.average.mean()]
    loop.take_step(trainer, state)
    assert all(map(torch.equal, before, trainer.weights))
    assert all(map(torch.equal, average, trainer.average.mean()))
    assert (state.step, state.skipped, state.skipped_in_a_row) == (2, 1, 1)
    loop.take_step(trainer, state)
    assert (state.skipped, state.skipped_in_a_row) == (1, 0)
    assert not all(map(torch.equal, before, trainer.weights))


def test_a_gradient_that_is_not_finite_is_never_applied(toy: Any, tmp_path: Path) -> None:
    trainer = toy.trainer(tmp_path)
    before = [weight.detach().clone() for weight in trainer.weights]
    for weight in trainer.weights:
        weight.grad = torch.ones_like(weight)
    trainer.weights[1].grad[0] = math.inf
    assert not step.apply_gradients(trainer, "all", 1.0, 0.1)
    assert all(map(torch.equal, before, trainer.weights))
    assert all(weight.grad is None for weight in trainer.weights)


def test_a_diverged_run_ends_and_every_checkpoint_is_healthy(
    toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison(monkeypatch, set(range(8, 99)))
    with pytest.raises(DivergedError, match=r"5 steps in a row up to step 12 .* checkpoint is of step 7"):
        toy.run(tmp_path, train__max_steps=50, train__keep=50)
    assert saved_steps(tmp_path) == list(range(1, 8))
    for path in tmp_path.glob("*.safetensors"):
        tensors = read(path).tensors
        assert all(t.isfinite().all() for t in tensors.values() if t.is_floating_point())
    assert DivergedError.exit_code == 4


def test_weights_that_are_not_finite_are_never_saved(toy: Any, tmp_path: Path) -> None:
    trainer = toy.trainer(tmp_path)
    assert loop.save_checkpoint(trainer, State(step=1))
    with torch.no_grad():
        trainer.weights[0].view(-1)[3] = math.nan
    assert not loop.save_checkpoint(trainer, State(step=2))
    with pytest.raises(DivergedError):
        loop.save_checkpoint(trainer, State(step=3, ended="it reached its end"))
    assert saved_steps(tmp_path) == [1]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_step_saves_and_leaves(
    toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, code: int
) -> None:
    whole, _ = toy.run(tmp_path / "whole", train__max_steps=STEPS)
    original = loop.learn

    def learn(trainer: Any, *args: Any) -> Any:
        if len(list((tmp_path / "stopped").glob("*.safetensors"))) == 0 and calls.pop():
            os.kill(os.getpid(), number)
        return original(trainer, *args)

    calls = [False] * 3 + [True] + [False] * 4
    with monkeypatch.context() as patch:
        patch.setattr(loop, "learn", learn)
        with pytest.raises(Stopped, match="step 5") as stopped:
            toy.run(tmp_path / "stopped", train__max_steps=STEPS, train__save_every=1e6)
    assert stopped.value.exit_code == code
    assert saved_steps(tmp_path / "stopped") == [5]
    again, _ = toy.run(tmp_path / "stopped", train__max_steps=STEPS)
    assert all(map(torch.equal, whole.weights, again.weights))


def test_patience_ends_the_run_and_keeps_the_best(
    toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    losses = iter([5.0, 4.0, 4.5, 4.25, 9.0])

    def measure(validation: Any, model: torch.nn.Module, *others: Any, **options: Any) -> Measurement:
        seen.append([weight.detach().clone() for weight in model.parameters()])
        return Measurement({"loss": Score(next(losses), higher=False)})

    seen: list[list[torch.Tensor]] = []
    monkeypatch.setattr(Validation, "measure", measure)
    trainer, state = toy.run(tmp_path, train__max_steps=50, train__valid_every=3, train__patience=2)
    assert state.step == 12
    assert (state.best_step, state.best) == (6, 4.0)
    assert "2 validations were no better than that of step 6" in state.ended
    assert all(map(torch.equal, trainer.final_weights(), seen[1]))


def test_patience_does_not_judge_what_was_cut_short(
    toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measure(*others: Any, **options: Any) -> Measurement:
        return Measurement({"loss": Score(next(losses), higher=False)}, complete=False, seconds=1e9)

    losses = iter(range(1, 99))
    monkeypatch.setattr(Validation, "measure", measure)
    trainer, state = toy.run(tmp_path, train__max_steps=STEPS, train__valid_every=1, train__patience=2)
    assert state.step == STEPS
    assert (state.best, state.stale) == (None, 0)
    assert all(map(torch.equal, trainer.final_weights(), trainer.average.mean()))


def test_minutes_give_every_validation_its_time(
    toy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A clock of which a step takes a second, and a validation all that it is given."""

    def step(trainer: Any, state: State) -> None:
        now[0] += 1.0
        original(trainer, state)

    def measure(*others: Any, limit: Limit, last: bool) -> Measurement:
        given.append((last, limit.left()))
        now[0] += limit.left()
        return Measurement({"loss": Score(1.0, higher=False)}, complete=False, seconds=math.inf)

    now, given, original = [0.0], [], loop.take_step
    monkeypatch.setattr(loop, "take_step", step)
    monkeypatch.setattr(Validation, "measure", measure)
    trainer, state = toy.trainer(tmp_path, train__minutes=2.0, train__valid_every=0), State()
    trainer.clock = lambda: now[0]
    with Metrics(tmp_path, step=0) as metrics:
        loop.train_loop(trainer, state, metrics)
    *between, last = given
    assert len(between) >= 4
    assert not any(last for last, _ in between)
    assert sum(seconds for _, seconds in between) <= 0.05 * 120
    assert last == (True, pytest.approx(0.05 * 120))
    assert 116 <= state.seconds <= 120  # three seconds are kept for saving
    assert list(state.scores) == ["loss"]


def test_metrics_tell_what_was_promised(toy: Any, tmp_path: Path) -> None:
    _, state = toy.run(tmp_path, train__max_steps=STEPS)
    lines = [json.loads(line) for line in (tmp_path / "metrics.jsonl").read_text().splitlines()]
    assert [line["step"] for line in lines] == [3, 5, 6, 9, 10, 12, 13]
    for line in lines:
        assert line.keys() >= {"step", "epoch", "seconds", "tokens", "tokens_per_second", "loss", "lr"}
        assert ("valid_loss" in line) == ("valid_bleu" in line) == (line["step"] in (5, 10, 13))
    assert lines[-1]["tokens"] == state.tokens
    assert lines[-1]["valid_loss"] == state.scores["loss"].value


def test_a_run_without_validation_pairs_trains_all_the_same(toy: Any, tmp_path: Path) -> None:
    trainer, state = toy.trainer(tmp_path, train__max_steps=3), State()
    trainer.evaluator = None
    with Metrics(tmp_path, step=0) as metrics:
        loop.train_loop(trainer, state, metrics)
    found = newest(tmp_path)
    assert found is not None
    assert found.step == state.step == 3
    assert state.scores == {}
