"""How long it will take, before it starts: a few batches are rehearsed and timed, and leave no trace.

Gradients are dropped, the optimiser moves a copy, and the random state is put back, so that a
rehearsed run is bit for bit the run without.
"""

import copy

from regard.training.loop import add_gradients
from regard.training.optimizer import build_optimizers
from regard.training.progress import duration
from regard.training.state import State
from regard.training.trainer import Clock, Trainer, random_state, set_random_state

REHEARSED = 3  # batches timed, after one that warms the machine up


def seconds_per_batch(trainer: Trainer, state: State) -> float:
    """The mean time of a forward and backward pass over the batches that come next."""
    random = random_state(trainer.device)
    count = trainer.feed.count(state.epoch)
    clock = Clock()
    for number in range(1 + REHEARSED):
        if number == 1:
            clock = Clock()
        batch = trainer.feed.batch(state.epoch, (state.position + number) % count).to(trainer.device)
        add_gradients(trainer, [batch], batch.tokens)
    seconds = clock() / REHEARSED + _seconds_per_step(trainer) / trainer.config.accumulate
    trainer.model.zero_grad(set_to_none=True)
    set_random_state(random, trainer.device)
    return seconds


def _seconds_per_step(trainer: Trainer) -> float:
    """The time of the optimisers' second step, the first being slower, on a copy of the model."""
    twin = copy.deepcopy(trainer.model)
    for weight, own in zip(twin.parameters(), trainer.model.parameters(), strict=True):
        weight.grad = None if own.grad is None else own.grad.clone()
    clock = Clock()
    optimizers = build_optimizers(twin, trainer.config)
    for _ in range(2):
        clock = Clock()
        for optimizer in optimizers:
            optimizer.step()
    return clock()


def forecast(trainer: Trainer, state: State) -> str:
    """What is ahead, in a line: time, steps, epochs."""
    each = seconds_per_batch(trainer, state)
    budget, accumulate = trainer.budget, trainer.config.accumulate
    per_epoch = trainer.feed.count(state.epoch)
    done = state.epoch * per_epoch + state.position
    batches = []
    if budget.steps:
        batches.append((budget.steps - state.step) * accumulate)
    if budget.epochs:
        batches.append(budget.epochs * per_epoch - done)
    if budget.seconds:
        batches.append(int(max(0.0, budget.seconds - budget.closing(state) - trainer.clock()) / each))
    ahead = max(0, min(batches))
    steps = ahead // accumulate
    return f"about {duration(ahead * each)}: {steps:,} steps, {ahead / per_epoch:.1f} epochs"
