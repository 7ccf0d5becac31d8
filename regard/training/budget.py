"""How far a run is: progress from its bounds, and what is due when.

A run ends at `max_steps`, after `max_epochs` or when its minutes are used up, whichever is first, so
its progress is the largest of the three shares. Steps and epochs make it a pure function of the
position in the data; only minutes ask the clock.
"""

import math
from dataclasses import dataclass

from regard.config import TrainConfig
from regard.errors import UsageError
from regard.training.schedule import factor, warmup_share
from regard.training.state import State

DEFAULT_MINUTES = 45.0  # the budget of a run that names no bound
VALIDATIONS = 20  # in a run, where valid_every does not say
VALIDATING_SHARE = 0.03  # of the time, at most, in a run bounded by minutes
SAVES = 10  # at least, in a run bounded by minutes
LAST_COSTS = 4  # times what the others do: it takes more sentences
CLOSING_SHARE = 0.1  # of the minutes, at most, kept for the last validation and for saving


@dataclass(frozen=True)
class Budget:
    """The bounds of a run; 0 does not bind."""

    steps: int
    epochs: int
    seconds: float
    accumulate: int

    @staticmethod
    def of(train: TrainConfig) -> "Budget":
        if train.max_steps and train.warmup >= train.max_steps:
            raise UsageError(
                f"train.warmup ({train.warmup}) must be smaller than train.max_steps ({train.max_steps})"
            )
        return Budget(train.max_steps, train.max_epochs, train.minutes * 60, train.accumulate)

    def closing(self, state: State) -> float:
        """Seconds to keep for what comes after the last step: a validation, scoring and saving."""
        each = state.validating / max(1, state.validations)
        return min(CLOSING_SHARE * self.seconds, 3.0 + LAST_COSTS * each)

    def may_be_thorough(self, state: State) -> bool:
        """Whether the minutes leave room for the last validation to take more sentences."""
        each = state.validating / max(1, state.validations)
        known = state.validations > 0 and state.seconds + LAST_COSTS * each <= self.seconds
        return not self.seconds or known

    def progress(self, state: State, batches: int, *, ahead: float = 0.0) -> float:
        """The share of the run that is done, 0 to 1, with `ahead` steps more than are done.

        `batches` is the number of batches in the state's epoch.
        """
        shares = [0.0]
        if self.steps:
            shares.append((state.step + ahead) / self.steps)
        if self.epochs:
            within = (state.position + ahead * self.accumulate) / max(1, batches)
            shares.append((state.epoch + within) / self.epochs)
        if self.seconds:
            whole = self.seconds - self.closing(state) - state.began
            shares.append((state.seconds - state.began) / whole if whole > 0 else 1.0)
        return min(1.0, max(shares))

    def over(self, state: State, batches: int) -> bool:
        """Whether a bound is reached. Whole numbers decide where they can."""
        if (self.steps and state.step >= self.steps) or (self.epochs and state.epoch >= self.epochs):
            return True
        return bool(self.seconds) and self.progress(state, batches) >= 1.0

    def learning_rate(self, train: TrainConfig, state: State, batches: int) -> float:
        """The rate of the next step: the schedule at the middle of that step.

        The middle keeps the first step of the warm-up and the last of the decay above zero.
        """
        middle = self.progress(state, batches, ahead=0.5)
        warmup = warmup_share(train.warmup, done=state.step + 0.5, progress=middle)
        return train.lr * factor(train.schedule, middle, warmup)

    def tick(self, state: State, batches: int) -> int:
        """How many validations of evenly spread ones should have been by now."""
        # A hair more than the exact share, so that 0.15 * 20 is 3 and not 2.
        return math.floor(self.progress(state, batches) * VALIDATIONS + 1e-9)

    def may_validate(self, state: State) -> bool:
        """Whether validating has kept to its share of the time; without minutes it always has."""
        return not self.seconds or state.validating <= VALIDATING_SHARE * (state.seconds - state.began)

    def save_every(self, train: TrainConfig) -> float:
        """Seconds between checkpoints; more often than asked for where the whole run is short."""
        return min(train.save_every, self.seconds / SAVES) if self.seconds else train.save_every
