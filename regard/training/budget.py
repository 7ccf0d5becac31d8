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
# In a run bounded by minutes, of the time from the first step on, at most. Together a tenth.
VALIDATING_SHARE = 0.05  # at every moment, for all validations up to then
LAST_SHARE = 0.05  # for the last one
WORTHWHILE = VALIDATING_SHARE / 4  # a cut validation waits for so much of it: four in a run at least
SAVES = 10  # at least, in a run bounded by minutes
SAVING = 3.0  # seconds kept for scoring and saving
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
        last = self._of_training(LAST_SHARE, state)
        if state.valid_cost:
            last = min(last, LAST_COSTS * state.valid_cost)
        return min(CLOSING_SHARE * self.seconds, SAVING + last)

    def allowance(self, state: State, *, first: bool = False, last: bool = False) -> float:
        """Seconds that a validation may take now; without minutes any number.

        The last one takes what is left of the minutes, and half of its share where nothing is. One before the
        first step has half of what the others have together.
        """
        if not self.seconds:
            return math.inf
        if last:
            share = self._of_training(LAST_SHARE, state)
            return max(share / 2, min(share, self.seconds - state.seconds))
        if first:
            return self._of_training(VALIDATING_SHARE, state) / 2
        return VALIDATING_SHARE * (state.seconds - state.began) - state.validating

    def _of_training(self, share: float, state: State) -> float:
        """A share of the seconds from the first step on."""
        return share * max(0.0, self.seconds - state.began)

    def may_validate(self, state: State) -> bool:
        """Whether there is time for a complete validation, or for one that is cut and still worth it.

        What the first one costs is not known; it takes what it is allowed.
        """
        if not self.seconds:
            return True
        worthwhile = min(state.valid_cost, self._of_training(WORTHWHILE, state))
        return self.allowance(state) >= worthwhile

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

    def save_every(self, train: TrainConfig) -> float:
        """Seconds between checkpoints; more often than asked for where the whole run is short."""
        return min(train.save_every, self.seconds / SAVES) if self.seconds else train.save_every
