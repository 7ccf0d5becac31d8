"""A step of several batches: what it draws and sums depends on their places alone."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from regard.training.checkpoint import save
from regard.training.resume import IN_A_TREE, resume
from regard.training.state import State
from regard.training.step import learn, next_part, next_places
from regard.training.trainer import Clock, pack
from regard.training.workspace import CHECKPOINTS, Run


def gradients(trainer: Any, state: State) -> list[torch.Tensor]:
    learn(trainer, next_part(trainer, state), None)
    found = [weight.grad.clone() for weight in trainer.weights]
    trainer.model.zero_grad()
    return found


def test_what_was_drawn_before_does_not_matter(toy: Any, tmp_path: Path) -> None:
    trainer = toy.trainer(tmp_path, train__accumulate=3)
    first = gradients(trainer, State())
    torch.manual_seed(99)
    assert all(map(torch.equal, first, gradients(trainer, State())))
    assert not all(map(torch.equal, first, gradients(trainer, State(position=1))))


def test_a_step_of_one_batch_draws_on(toy: Any, tmp_path: Path) -> None:
    trainer = toy.trainer(tmp_path)
    assert not trainer.in_a_tree
    first = gradients(trainer, State())
    assert not all(map(torch.equal, first, gradients(trainer, State())))


def test_the_sum_in_a_tree_is_that_of_one_after_another_but_for_rounding(toy: Any, tmp_path: Path) -> None:
    trainer = toy.trainer(tmp_path, train__accumulate=5, model__dropout=0.0)
    tree = gradients(trainer, State())
    trainer.in_order = True
    for ours, theirs in zip(tree, gradients(trainer, State()), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(("chosen", "in_order"), [({}, True), ({"sums": IN_A_TREE}, False)])
def test_a_run_goes_on_with_the_sums_that_it_began_with(
    toy: Any, tmp_path: Path, chosen: dict[str, str], in_order: bool
) -> None:
    trainer = toy.trainer(tmp_path / CHECKPOINTS, train__accumulate=3)
    save(trainer.folder, pack(trainer, State(step=4)), keep=1)
    assert resume(trainer, Run({}, {}, chosen), Clock(), {}).step == 4
    assert trainer.in_order is in_order


def test_places_go_over_the_end_of_an_epoch(toy: Any, tmp_path: Path) -> None:
    trainer = toy.trainer(tmp_path, train__accumulate=3)
    last = trainer.feed.count(0) - 1
    state = State(position=last)
    assert next_places(trainer, state) == [(0, last), (1, 0), (1, 1)]
    assert (state.epoch, state.position) == (1, 2)


def test_buffers_are_for_every_batch_what_they_were_and_the_first_one_s_stay(
    toy: Any, tmp_path: Path
) -> None:
    trainer = toy.trainer(tmp_path, train__accumulate=3)
    seen: list[float] = []
    counter = nn.Module()
    counter.register_buffer("count", torch.zeros(()))
    trainer.moving = [counter.count]
    original = trainer.objective.losses

    def losses(model: nn.Module, batch: Any) -> Any:
        for loss in original(model, batch):
            seen.append(float(counter.count))
            counter.count += len(seen)
            yield loss

    trainer.objective.losses = losses
    gradients(trainer, State())
    assert seen == [0.0, 0.0, 0.0]
    assert float(counter.count) == 1.0
