"""The things a run works with, and how they go into a checkpoint and come back.

`Trainer` holds what the loop reads and changes in place (model, optimisers, average); the numbers
are in `State`. `run.py` builds it, `loop.py` drives it.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.config import TrainConfig
from regard.errors import UsageError
from regard.process.progress import Reporter, Silent
from regard.training.averaging import Average, Best, build_average
from regard.training.budget import Budget
from regard.training.checkpoint import Checkpoint
from regard.training.objective import Evaluator, Feed, Group, Objective
from regard.training.optimizer import build_optimizers
from regard.training.owners import Owners
from regard.training.rounds import Rounds
from regard.training.state import State
from regard.training.world import ALONE, World


class Clock:
    """Seconds that a run has used; time between two processes does not count."""

    def __init__(self, used: float = 0.0) -> None:
        self._start = time.monotonic() - used

    def __call__(self) -> float:
        return time.monotonic() - self._start


@dataclass
class Trainer:
    """Everything but the numbers of a run."""

    model: nn.Module
    config: TrainConfig
    feed: Feed
    objective: Objective
    evaluator: Evaluator | None
    folder: Path  # of the checkpoints
    device: torch.device
    reporter: Reporter = field(default_factory=Silent)
    clock: Clock = field(default_factory=Clock)
    further: bool = False  # the model has learned this task before: it must not get worse
    publish: Callable[[State], None] | None = None  # makes the folder a model, each time a checkpoint is made
    world: World = ALONE
    in_order: bool = False  # gradients are added one after another: the run began so, in an older version

    def __post_init__(self) -> None:
        self.model.to(self.device).train()
        self.budget = Budget.of(self.config)
        self.weights = [weight for weight in self.model.parameters() if weight.requires_grad]
        self.groups = self.objective.groups(self.model)
        _check_groups(self.groups, self.weights)
        self.movers = {
            name: build_optimizers(self.model, self.config, group.weights, group.shares, group.betas)
            for name, group in self.groups.items()
        }
        self.join(self.world)
        self.average: Average = build_average(self.config.average, self.weights, self.config.average_span)
        self.best = Best()
        held = self.model.state_dict(keep_vars=True).values() if self.in_a_tree else ()
        buffers = {id(each): each for each in held if not isinstance(each, nn.Parameter)}
        self.moving = list(buffers.values())  # by a forward pass, it may be

    def join(self, world: World) -> None:
        """Train with the processes of a world from now on; none has moved yet."""
        self.world, every = world, self.config.outer_every
        kind = torch.bfloat16 if self.config.sums == "bf16" else torch.float32
        self.rounds = Rounds(self.weights, every, world, kind) if every else None
        self.beside = ALONE if every else world  # those that a step is made with
        self.owners = {
            name: Owners(group.weights, self.movers[name], self.beside, kind)
            for name, group in self.groups.items()
        }

    @property
    def in_a_tree(self) -> bool:
        """Whether the gradients of a step are summed so that any number of processes could do it."""
        return self.config.accumulate > 1 and not self.in_order

    @property
    def optimizers(self) -> list[torch.optim.Optimizer]:
        """Those of every group, in order."""
        return [optimizer for movers in self.movers.values() for optimizer in movers]

    def final_weights(self) -> list[Tensor]:
        """What is worth keeping: the best, if it was watched for, else the average."""
        return self.best.weights or self.average.mean()

    @property
    def keeps_best(self) -> bool:
        """Whether the weights of the best validation are kept."""
        return self.further or self.config.patience > 0

    def healthy(self) -> bool:
        """Whether every weight is a finite number; the norm of one that is not is not finite either."""
        norms = torch.stack(torch._foreach_norm([weight.detach() for weight in self.weights]))
        return bool(norms.isfinite().all())


def _check_groups(groups: Mapping[str, Group], weights: Sequence[Tensor]) -> None:
    """Refuse an objective that leaves weights out, or moves some twice."""
    held = [id(weight) for group in groups.values() for weight in group.weights]
    if sorted(held) != sorted(map(id, weights)):
        raise UsageError(
            f"the objective's groups ({', '.join(groups)}) hold {len(held)} weights and the model has "
            f"{len(weights)} that learn; each must be in one group"
        )


def random_state(device: torch.device) -> dict[str, Tensor]:
    """The state of every generator that training on `device` draws from."""
    states = {"cpu": torch.get_rng_state()}
    if device.type == "cuda":
        states["cuda"] = torch.cuda.get_rng_state(device)
    if device.type == "mps":
        states["mps"] = torch.mps.get_rng_state()
    return states


def set_random_state(states: dict[str, Tensor], device: torch.device) -> None:
    """Take back what `random_state` gave; a state of another kind of device has no meaning here."""
    torch.set_rng_state(states["cpu"])
    if device.type == "cuda" and "cuda" in states:
        torch.cuda.set_rng_state(states["cuda"], device)
    if device.type == "mps" and "mps" in states:
        torch.mps.set_rng_state(states["mps"])


def pack(trainer: Trainer, state: State) -> Checkpoint:
    """Trainer and state as a checkpoint; its tensors are the living ones, not copies."""
    tensors: dict[str, Tensor] = {}
    groups: list[dict[str, Any]] = []
    for number, optimizer in enumerate(trainer.optimizers):
        tree = optimizer.state_dict()
        for index, slots in tree["state"].items():
            tensors |= {f"optimizer.{number}.{index}.{name}": slot for name, slot in slots.items()}
        groups.append(tree["param_groups"])
    parts = {
        "model": _own_tensors(trainer.model),
        "average": trainer.average.tensors(),
        "best": trainer.best.tensors(),
        "random": random_state(trainer.device),
    }
    if trainer.rounds is not None:
        parts["outer"] = trainer.rounds.tensors()
    for part, held in parts.items():
        tensors |= {f"{part}.{name}": tensor for name, tensor in held.items()}
    numbers = {"step": state.step, "state": json.loads(state.to_json()), "optimizers": groups}
    return Checkpoint(state.step, tensors, json.dumps(numbers, allow_nan=False))


@torch.no_grad()
def unpack(trainer: Trainer, checkpoint: Checkpoint) -> State:
    """Put a checkpoint into the trainer; the state that it holds."""
    if trainer.rounds is not None:
        checkpoint = trainer.rounds.own(checkpoint)
    numbers = json.loads(checkpoint.numbers)
    saved = checkpoint.part("model")
    for name, tensor in _own_tensors(trainer.model).items():
        tensor.copy_(saved[name])
    if trainer.rounds is not None:
        trainer.rounds.load(checkpoint.part("outer"))
    for number, optimizer in enumerate(trainer.optimizers):
        slots: dict[int, dict[str, Tensor]] = {}
        for key, tensor in checkpoint.part(f"optimizer.{number}").items():
            index, _, name = key.partition(".")
            slots.setdefault(int(index), {})[name] = tensor
        groups = [
            group | {"share": group.get("share", 1.0)} for group in numbers["optimizers"][number]
        ]  # 0.1.0 had none
        optimizer.load_state_dict({"state": slots, "param_groups": groups})
    trainer.average.load(checkpoint.part("average"))
    trainer.best.load(checkpoint.part("best"), trainer.device)
    set_random_state(checkpoint.part("random"), trainer.device)
    return State.from_json(json.dumps(numbers["state"]))


def _own_tensors(model: nn.Module) -> dict[str, Tensor]:
    """Each tensor of the model once, under its first name; tied weights have several."""
    once: dict[int, tuple[str, Tensor]] = {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        once.setdefault(id(tensor), (name, tensor))
    return {name: tensor.detach() for name, tensor in once.values()}
