"""One step: which batches it is of, their gradients, and the move.

A step of several batches (`train.accumulate`) is the same whatever computes it: what is drawn at random
depends on the place of a batch alone, and gradients are summed in the order of `sums.py`. So a process of
several can take its share of them (`world.py`). A step of one batch draws on from where the last one ended.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from regard.errors import UsageError
from regard.process.device import autocast
from regard.training.objective import Batch, Loss
from regard.training.state import State
from regard.training.sums import Node, Values
from regard.training.trainer import Trainer
from regard.training.world import World

Place = tuple[int, int]  # epoch and position
_MAKING = 1_000_000  # the number of what is drawn for a batch itself, above those of its losses


@dataclass(frozen=True)
class Part:
    """What this process has of a step: some of its batches."""

    batches: Sequence[Batch]
    targets: int  # that losses are divided by: of the whole step, or of this part where each goes alone
    places: Sequence[Place] = ()  # of the whole step; none: its gradients are added one after another
    leaves: Sequence[int] = ()  # their numbers among the places
    seen: int = 0  # targets of the whole step


def next_places(trainer: Trainer, state: State) -> list[Place]:
    """The batches of the next step; moves the position past them, over the end of an epoch if need be."""
    places: list[Place] = []
    last = trainer.budget.epochs or math.inf
    while len(places) < trainer.config.accumulate and state.epoch < last:
        places.append((state.epoch, state.position))
        state.position += 1
        if state.position == trainer.feed.count(state.epoch):
            state.epoch, state.position = state.epoch + 1, 0
    return places


def next_part(trainer: Trainer, state: State) -> Part:
    """This process's part of the next step."""
    places = next_places(trainer, state)
    mine = trainer.turns(len(places))
    batches: list[Batch] = []
    with trainer.world.together():
        for epoch, position in (places[min(leaf, len(places) - 1)] for leaf in mine):
            if trainer.in_a_tree:
                _seed(trainer, epoch, position, _MAKING)
            batches.append(trainer.feed.batch(epoch, position).to(trainer.device))
    own = sum(batch.targets for leaf, batch in zip(mine, batches, strict=True) if leaf < len(places))
    seen = sum(int(each) for (each,) in trainer.world.numbers(own))
    targets = own if trainer.rounds else seen
    return Part(batches, targets, places if trainer.in_a_tree else (), mine, seen)


def learn(trainer: Trainer, part: Part, lr: float | None) -> dict[str, float] | None:
    """Every loss of the batches, and the move of its group after it; the summed losses by group.

    None, where a loss or its gradients are not finite: that group is not moved. Without a rate nothing is,
    and the gradients stay.
    """
    streams = [trainer.objective.losses(trainer.model, batch) for batch in part.batches]
    found: dict[str, float] = {}
    finite, number = True, 0
    while (loss := add_gradients(trainer, streams, part, number)) is not None:
        group, total = loss
        found[group] = found.get(group, 0.0) + total
        if lr is not None:
            finite = apply_gradients(trainer, group, total, lr) and finite
        number += 1
    return found if finite else None


def add_gradients(
    trainer: Trainer, streams: Sequence[Iterator[Loss]], part: Part, number: int = 0
) -> tuple[str, float] | None:
    """Gradients of the next loss of every batch, per target; its group and sum. None where there is none."""
    if part.places:
        return _in_a_tree(trainer, streams, part, number)
    total = torch.zeros((), device=trainer.device)
    group = ""
    for stream in streams:
        loss = _next(trainer, stream, trainer.world.rank, trainer.world.size)
        if loss is None:
            continue
        group = _group_of(trainer, loss, group)
        _backward(trainer, loss.total / part.targets)
        total += loss.total.detach()
    return (group, float(total)) if group else None


def _in_a_tree(
    trainer: Trainer, streams: Sequence[Iterator[Loss]], part: Part, number: int
) -> tuple[str, float] | None:
    """The same in an order that depends on the number of batches alone, each with draws of its own.

    Buffers that a forward pass moves are for each batch what they were before the step; the first one's stay.
    """
    nodes: list[Node] = []
    group, given, last = "", 0, len(part.places) - 1
    before = [buffer.clone() for buffer in trainer.moving]
    after = before
    for leaf, stream in zip(part.leaves, streams, strict=True):
        _seed(trainer, *part.places[min(leaf, last)], number)
        _put(trainer.moving, before)
        loss = _next(trainer, stream, leaf, len(part.places))
        if loss is None:
            continue
        group = _group_of(trainer, loss, group)
        _backward(trainer, loss.total / part.targets)
        gradients, given = _gradients(trainer, group), given + 1
        trainer.model.zero_grad(set_to_none=True)
        trainer.owners[group].take(nodes, leaf, gradients, loss.total.detach().float().reshape(1))
        after = [buffer.clone() for buffer in trainer.moving] if leaf == part.leaves[0] else after
    if nodes and given < len(streams):
        raise UsageError("some batches gave fewer losses than others; every batch must give the same ones")
    group = _agreed(trainer, group, part)
    if not group:
        return None
    keep_first(trainer.moving, after, trainer.beside)
    *summed, total = trainer.owners[group].summed(nodes, len(part.places), trainer.device)
    for weight, gradient in zip(trainer.groups[group].weights, summed, strict=True):
        weight.grad = gradient
    assert total is not None
    return group, float(total)


def _next(trainer: Trainer, stream: Iterator[Loss], leaf: int, count: int) -> Loss | None:
    """The next loss of batch `leaf` of `count`."""
    with autocast(trainer.device, trainer.config.precision):
        if trainer.shards is None:
            return next(stream, None)
        trainer.shards.expect(leaf, count)
        return trainer.shards.next(stream)


def _backward(trainer: Trainer, loss: Tensor) -> None:
    if trainer.shards is None:
        loss.backward()  # type: ignore[no-untyped-call]
    else:
        trainer.shards.backward(loss)


def _gradients(trainer: Trainer, group: str) -> Values:
    if trainer.shards is not None:
        return trainer.shards.gradients()
    return [weight.grad for weight in trainer.groups[group].weights]


def _seed(trainer: Trainer, epoch: int, position: int, number: int) -> None:
    """What is drawn next depends on the seed, the place of a batch and the number of its loss."""
    drawn = np.random.SeedSequence([trainer.config.seed, epoch, position, number]).generate_state(
        1, np.uint64
    )
    torch.manual_seed(int(drawn[0]))


def _put(buffers: Sequence[Tensor], values: Sequence[Tensor]) -> None:
    for buffer, value in zip(buffers, values, strict=True):
        buffer.copy_(value)


def _agreed(trainer: Trainer, group: str, part: Part) -> str:
    """The group of the loss; a process that has no batch in this step learns it from those that have."""
    if len(part.places) >= trainer.beside.size:
        return group
    names = list(trainer.groups)
    every = trainer.beside.numbers(names.index(group) if group else -1)
    found = max(int(each) for (each,) in every)
    return "" if found < 0 else names[found]


def keep_first(buffers: Sequence[Tensor], after: Sequence[Tensor], world: World) -> None:
    """The buffers as the first process has them `after` its first batch, in every one."""
    if not after:
        return
    if world.size > 1:
        rows = [value.cpu().reshape(-1).view(torch.uint8) for value in after]
        told = world.tell_tensors({"": torch.cat(rows)} if world.first else None)[""]
        parts = torch.split(told, [len(row) for row in rows])
        after = [
            part.clone().view(value.dtype).view_as(value) for part, value in zip(parts, after, strict=True)
        ]
    _put(buffers, after)


def _group_of(trainer: Trainer, loss: Loss, before: str) -> str:
    """The group that a loss moves; refuses what is no loss, and batches that are not in step."""
    if not isinstance(loss, Loss):
        raise UsageError(f"the objective gave a {type(loss).__name__}, not a Loss")
    if loss.group not in trainer.groups or before not in ("", loss.group):
        raise UsageError(
            f"the objective gave a loss of {loss.group} where its groups are {', '.join(trainer.groups)}; "
            "every batch must give the same ones in the same order"
        )
    return loss.group


def apply_gradients(trainer: Trainer, group: str, loss: float, lr: float) -> bool:
    """Clip and move; False, and nothing moved, where the loss or the gradients are not finite."""
    owners = trainer.owners[group]
    norm = float(owners.norm())
    finite = math.isfinite(loss) and math.isfinite(norm)
    if finite:
        if trainer.config.clip:
            owners.clip(norm, trainer.config.clip)
        for optimizer in trainer.movers[group]:
            for part in optimizer.param_groups:
                part["lr"] = lr * trainer.groups[group].lr * part["share"]
            with autocast(trainer.device, trainer.config.precision):  # for Muon's products
                optimizer.step()
        owners.hand_round()
    trainer.forget_gradients()
    return finite
