"""Where a run stands: one value that the loop moves forward and a checkpoint holds.

Everything that decides what happens next and is not a tensor is here, as plain numbers, so that a
run goes on from a checkpoint as if it had never stopped.
"""

import dataclasses
import json
from dataclasses import dataclass
from typing import Any


@dataclass
class Window:
    """What has gathered since the last line of metrics.jsonl."""

    loss: float = 0.0  # summed over tokens
    tokens: int = 0
    seconds: float = 0.0  # of training alone, without validating and saving


@dataclass
class State:
    """The numbers of a run. `epoch` and `position` name the next batch."""

    step: int = 0
    epoch: int = 0
    position: int = 0
    seconds: float = 0.0  # since the run began, pauses left out
    began: float = 0.0  # what of them had passed when the first step began
    tokens: int = 0  # target tokens trained on
    skipped: int = 0
    skipped_in_a_row: int = 0
    ticks: int = 0  # evenly spread validations that are behind us
    validations: int = 0  # and how many took place
    validating: float = 0.0  # seconds they took
    best_loss: float | None = None
    best_step: int = 0
    stale: int = 0  # validations since the best one
    valid_loss: float | None = None
    valid_bleu: float | None = None
    valid_chrf: float = 0.0
    valid_pairs: int = 0  # that BLEU and chrF were measured on
    signature: str = ""  # of sacreBLEU
    ended: str = ""  # why training is over
    window: Window = dataclasses.field(default_factory=Window)

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), allow_nan=False)

    @staticmethod
    def from_json(text: str) -> "State":
        tree: dict[str, Any] = json.loads(text)
        return State(**(tree | {"window": Window(**tree["window"])}))
