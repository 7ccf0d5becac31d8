"""Several losses and groups in one step: order, moves in between, exact resuming, broken contracts."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from regard.config import Config, TrainConfig, merge
from regard.errors import UsageError
from regard.training.checkpoint import newest
from regard.training.loop import train_loop
from regard.training.metrics import Metrics, read_metrics
from regard.training.objective import Group, Loss, Objective
from regard.training.state import State
from regard.training.trainer import Trainer, unpack


@dataclass(frozen=True)
class Numbers:
    """A batch of numbers (B, 3)."""

    x: torch.Tensor

    @property
    def targets(self) -> int:
        return len(self.x)

    def to(self, device: torch.device | str) -> "Numbers":
        return Numbers(self.x.to(device))


class Drawn:
    """Batches drawn from their place."""

    def count(self, epoch: int) -> int:
        return 5

    def batch(self, epoch: int, position: int) -> Numbers:
        random = torch.Generator().manual_seed(100 * epoch + position)
        return Numbers(torch.randn(4, 3, generator=random))


class Two(nn.Module):
    """A maker and a critic."""

    def __init__(self) -> None:
        super().__init__()
        self.maker, self.critic = nn.Linear(3, 3), nn.Linear(3, 1)


class Against(Objective):
    """The critic tells numbers from made ones, then the maker is made to please it."""

    def __init__(self) -> None:
        self.seen: list[list[torch.Tensor]] = []

    def groups(self, model: Any) -> Mapping[str, Group]:
        return {
            "critic": Group(list(model.critic.parameters()), lr=2.0),
            "maker": Group(list(model.maker.parameters())),
        }

    def losses(self, model: Any, batch: Numbers) -> Iterator[Loss]:
        made = model.maker(batch.x + torch.randn_like(batch.x))
        yield Loss((model.critic(made.detach()) - model.critic(batch.x)).tanh().sum(), "critic")
        self.seen.append([weight.detach().clone() for weight in model.critic.parameters()])
        yield Loss(-model.critic(made).tanh().sum(), "maker")


def run(folder: Path, steps: int = 9, objective: Objective | None = None, **more: Any) -> Trainer:
    config = merge(Config(), {"train.max_steps": steps, "train.save_every": 0.0, "train.log_every": 2} | more)
    torch.manual_seed(1)
    folder.mkdir(parents=True, exist_ok=True)
    objective = objective or Against()
    trainer = Trainer(Two(), config.train, Drawn(), objective, None, folder, torch.device("cpu"))
    found = newest(folder)
    state = unpack(trainer, found) if found else State()
    with Metrics(folder, step=state.step) as metrics:
        train_loop(trainer, state, metrics)
    return trainer


@pytest.mark.parametrize("accumulate", [1, 3])
def test_a_group_is_moved_before_the_next_loss_and_alone(tmp_path: Path, accumulate: int) -> None:
    objective = Against()
    torch.manual_seed(1)
    first = [weight.detach().clone() for weight in Two().critic.parameters()]
    trainer = run(tmp_path, 1, objective, **{"train.accumulate": accumulate})
    for seen in objective.seen:
        assert not torch.equal(first[0], seen[0])
        assert all(map(torch.equal, seen, trainer.groups["critic"].weights))
    rates = {name: movers[0].param_groups[0]["lr"] for name, movers in trainer.movers.items()}
    assert rates["critic"] == pytest.approx(2 * rates["maker"])


def test_two_groups_go_on_bit_for_bit(tmp_path: Path) -> None:
    whole = run(tmp_path / "whole")

    class Killed(Against):
        calls = 0

        def losses(self, model: Any, batch: Numbers) -> Iterator[Loss]:
            self.calls += 1
            if self.calls == 6:
                raise KeyboardInterrupt
            return super().losses(model, batch)

    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "killed", objective=Killed())
    again = run(tmp_path / "killed")
    assert all(map(torch.equal, whole.weights, again.weights))
    lines = [read_metrics(tmp_path / name / "metrics.jsonl") for name in ("whole", "killed")]
    losses = [[(line["loss_critic"], line["loss_maker"], line["loss"]) for line in each] for each in lines]
    assert losses[0] == losses[1]
    assert losses[0][0][2] == pytest.approx(sum(losses[0][0][:2]))


class Wrong(Objective):
    """Breaks one contract or the other."""

    def __init__(self, gives: Any) -> None:
        self.gives = gives

    def losses(self, model: Any, batch: Numbers) -> Iterator[Loss]:
        yield self.gives(model.critic(model.maker(batch.x)).sum())


@pytest.mark.parametrize(
    ("gives", "said"),
    [(lambda loss: loss, "gave a Tensor, not a Loss"), (lambda loss: Loss(loss, "other"), "a loss of other")],
)
def test_a_broken_objective_is_one_line(tmp_path: Path, gives: Any, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        run(tmp_path, objective=Wrong(gives))


def test_groups_hold_every_weight_once(tmp_path: Path) -> None:
    class Half(Against):
        def groups(self, model: Any) -> Mapping[str, Group]:
            return {"critic": Group(list(model.critic.parameters()))}

    with pytest.raises(UsageError, match=r"groups \(critic\) hold 2 weights and the model has 4"):
        Trainer(Two(), TrainConfig(max_steps=1), Drawn(), Half(), None, tmp_path, torch.device("cpu"))


def test_a_group_says_how_long_adam_remembers(tmp_path: Path) -> None:
    class Short(Against):
        def groups(self, model: Any) -> Mapping[str, Group]:
            held = super().groups(model)
            return {**held, "maker": Group(held["maker"].weights, betas=(0.0, 0.9))}

    trainer = run(tmp_path, 1, Short(), **{"train.optimizer": "adam"})
    found = {name: movers[0].param_groups[0]["betas"] for name, movers in trainer.movers.items()}
    assert found == {"critic": (0.9, 0.98), "maker": (0.0, 0.9)}
