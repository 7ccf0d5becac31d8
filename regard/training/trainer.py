"""The things a run works with, and how they go into a checkpoint and come back.

`Trainer` holds what the loop reads and changes in place (model, optimisers, average); the numbers
are in `State`. `run.py` builds it, `loop.py` drives it.
"""

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from regard.config import TrainConfig
from regard.errors import UsageError
from regard.process.progress import Reporter, Silent
from regard.training.averaging import Average, Best, build_average, holding
from regard.training.budget import Budget
from regard.training.checkpoint import Checkpoint
from regard.training.objective import Evaluator, Feed, Group, Objective
from regard.training.optimizer import build_optimizers
from regard.training.owners import Owners
from regard.training.rounds import Rounds
from regard.training.state import State
from regard.training.world import ALONE, World

if TYPE_CHECKING:
    from regard.training.shards import Shards


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
        self.shards: Shards | None = None
        self.budget = Budget.of(self.config)
        self.weights = [weight for weight in self.model.parameters() if weight.requires_grad]
        self.groups = self.objective.groups(self.model)
        _check_groups(self.groups, self.weights)
        self.movers = {
            name: build_optimizers(self.model, self.config, group.weights, group.shares, group.betas)
            for name, group in self.groups.items()
        }
        self.parameters = sum(weight.numel() for weight in self.weights)
        self.join(self.world)
        self.best = Best()
        held = self.model.state_dict(keep_vars=True).values() if self.in_a_tree else ()
        buffers = {id(each): each for each in held if not isinstance(each, nn.Parameter)}
        self.moving = list(buffers.values())  # by a forward pass, it may be

    def join(self, world: World) -> None:
        """Train with the processes of a world from now on; none has moved yet."""
        self.world, every = world, self.config.outer_every
        if self.config.shard and world.size > 1:
            self._cut()
        self.average: Average = build_average(self.config.average, self.weights, self.config.average_span)
        kind = torch.bfloat16 if self.config.sums == "bf16" else torch.float32
        self.rounds = Rounds(self.weights, every, world, kind, self.config.outer_momentum) if every else None
        self.beside = ALONE if every else world  # those that a step is made with
        self.owners = {
            name: self.shards.holders()
            if self.shards
            else Owners(group.weights, self.movers[name], self.beside, kind)
            for name, group in self.groups.items()
        }

    def _cut(self) -> None:
        """Let each process hold a shard of the model, and of all that moves it."""
        from regard.training.shards import Shards

        if len(self.groups) > 1:
            raise UsageError(
                f"train.shard=true cannot cut a model whose parts learn in turn ({', '.join(self.groups)})"
            )
        self.world.same({"weights": self.digest()})
        self.shards = shards = Shards(self.model, self.weights, self.optimizers, self.world)
        self.groups = {
            name: replace(group, weights=shards.weights, shares=()) for name, group in self.groups.items()
        }
        self.weights = shards.weights

    def digest(self) -> str:
        """A hash of all weights that learn."""
        found = hashlib.sha256()
        for weight in self.weights:
            found.update(weight.detach().cpu().numpy().tobytes())
        return found.hexdigest()

    def turns(self, count: int) -> range:
        """Which of the `count` batches of a step this process computes, in order.

        Where layers are made whole together, all compute as often: numbers from `count` on are the last.
        """
        if self.shards is None:
            return self.world.share(count)
        size = self.world.size
        return range(self.world.rank, -(-count // size) * size, size)

    @contextmanager
    def holding(self, weights: Sequence[Tensor]) -> Iterator[nn.Module]:
        """The model with these weights inside the block, in all processes, which enter it together."""
        if self.shards is not None:
            with self.shards.whole(self.model, weights) as model:
                yield model
            return
        with holding(self.weights, weights):
            yield self.model

    def forget_gradients(self) -> None:
        """Those of the model, and of its shards."""
        self.model.zero_grad(set_to_none=True)
        for weight in self.weights if self.shards else ():
            weight.grad = None

    def tensors(self) -> dict[str, Tensor]:
        """Each tensor of the model once, under its first name; tied weights have several."""
        if self.shards is not None:
            return self.shards.tensors(self.model)
        once: dict[int, tuple[str, Tensor]] = {}
        for name, tensor in self.model.state_dict(keep_vars=True).items():
            once.setdefault(id(tensor), (name, tensor))
        return {name: tensor.detach() for name, tensor in once.values()}

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
        well = bool(norms.isfinite().all())
        return well if self.shards is None else all(each for (each,) in self.world.numbers(well))


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
        "model": trainer.tensors(),
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
    for name, tensor in trainer.tensors().items():
        tensor.copy_(saved[name])
    if trainer.shards is not None:
        trainer.shards.taken_in()
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
