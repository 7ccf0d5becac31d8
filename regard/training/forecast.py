"""How long it will take, before it starts: what was rehearsed (`choice.py`) times what the bounds leave."""

import math
from dataclasses import dataclass

from regard.process.progress import duration
from regard.training.budget import LAST_SHARE, VALIDATING_SHARE
from regard.training.state import State
from regard.training.trainer import Trainer


@dataclass(frozen=True)
class Forecast:
    """What is ahead: batches of `each` seconds, as many as the first bound to be reached leaves."""

    each: float
    batches: int
    per_epoch: int
    accumulate: int
    bound: str  # minutes, steps or epochs

    @property
    def steps(self) -> int:
        return self.batches // self.accumulate

    def line(self) -> str:
        """Time, steps and epochs, for people."""
        time, epochs = duration(self.batches * self.each), self.batches / self.per_epoch
        return f"about {time}: {self.steps:,} steps, {epochs:.1f} epochs"

    def advice(self, needed: int) -> str | None:
        """What to do where that is less than a new model needs to learn anything; None where it is not."""
        if self.steps >= needed:
            return None
        few = f"{self.steps:,} step{'' if self.steps == 1 else 's'} will hardly teach it anything"
        minutes = math.ceil(needed * self.accumulate * self.each / (1 - VALIDATING_SHARE - LAST_SHARE) / 60)
        epochs = math.ceil(needed * self.accumulate / self.per_epoch)
        ways = {
            "minutes": f"--minutes {minutes} or more, a smaller --preset or a less busy machine gives them",
            "steps": f"set train.max_steps to {needed} or more",
            "epochs": f"set train.max_epochs to {epochs} or more",
        }
        return f"{few}, results begin at about {needed}: {ways[self.bound]}"


def forecast(trainer: Trainer, state: State, each: float) -> Forecast:
    """What is ahead of a run that stands where `state` says, and whose batches take `each` seconds."""
    budget, accumulate = trainer.budget, trainer.config.accumulate
    per_epoch = trainer.feed.count(state.epoch)
    batches = {}
    if budget.steps:
        batches["steps"] = (budget.steps - state.step) * accumulate
    if budget.epochs:
        batches["epochs"] = budget.epochs * per_epoch - (state.epoch * per_epoch + state.position)
    if budget.seconds:
        left = (budget.seconds - budget.closing(state) - trainer.clock()) * (1 - VALIDATING_SHARE)
        batches["minutes"] = int(left / each)
    bound = min(batches, key=lambda name: batches[name])
    return Forecast(each, max(0, batches[bound]), per_epoch, accumulate, bound)
