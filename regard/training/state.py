"""Where a run stands: one value that the loop moves forward and a checkpoint holds.

Everything that decides what happens next and is not a tensor is here, as plain numbers, so that a
run goes on from a checkpoint as if it had never stopped.
"""

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from regard.measure.score import Score, as_tree, of_tree

_BEFORE = ("valid_loss", "valid_bleu", "valid_chrf", "valid_pairs", "signature", "best_loss")


@dataclass
class Window:
    """What has gathered since the last line of metrics.jsonl."""

    loss: float = 0.0  # summed over targets
    tokens: int = 0
    seconds: float = 0.0  # of training alone, without validating and saving
    groups: dict[str, float] = dataclasses.field(default_factory=dict)  # the same a group of weights

    def add(self, losses: Mapping[str, float]) -> None:
        """The summed losses of one step, by group."""
        for group, loss in losses.items():
            self.groups[group] = self.groups.get(group, 0.0) + loss
            self.loss += loss

    def losses(self) -> dict[str, float]:
        """The mean losses by group; none before the first step."""
        if not self.tokens:
            return {}
        held = self.groups if len(self.groups) > 1 else {"all": self.loss}
        return {group: loss / self.tokens for group, loss in held.items()}


@dataclass
class State:
    """The numbers of a run. `epoch` and `position` name the next batch."""

    step: int = 0
    epoch: int = 0
    position: int = 0
    seconds: float = 0.0  # since the run began, pauses left out
    began: float = 0.0  # what of them had passed when the first step began
    tokens: int = 0  # targets trained on
    skipped: int = 0
    skipped_in_a_row: int = 0
    ticks: int = 0  # evenly spread validations that are behind us
    validations: int = 0  # and how many took place
    validating: float = 0.0  # seconds they took
    valid_cost: float = 0.0  # seconds that a complete one takes, judged by the last
    best: float | None = None  # of the score that decides
    best_step: int = 0
    stale: int = 0  # validations since the best one
    scores: dict[str, Score] = dataclasses.field(default_factory=dict)  # of the last validation
    ended: str = ""  # why training is over
    window: Window = dataclasses.field(default_factory=Window)

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self), allow_nan=False)

    @property
    def standing(self) -> str:
        """The score that tells people most: the second, for the first one decides; "" before there is any."""
        shown = list(self.scores.items())[:2]
        return f"valid {shown[-1][1].words(shown[-1][0])}" if shown else ""

    @staticmethod
    def from_json(text: str) -> "State":
        tree = _renewed(json.loads(text))
        window, scores = Window(**tree["window"]), of_tree(tree["scores"])
        return State(**(tree | {"window": window, "scores": scores}))


def _renewed(tree: dict[str, Any]) -> dict[str, Any]:
    """A state that version 0.1.0 saved, whose scores were loss, BLEU and chrF, as one of today."""
    if "scores" in tree:
        return tree
    old = {name: tree.pop(name, None) for name in _BEFORE}
    scores = {}
    if old["valid_loss"] is not None:
        scores["loss"] = Score(old["valid_loss"], higher=False)
    if old["valid_bleu"] is not None:
        count = int(old["valid_pairs"] or 0)
        for name, label, sign in (("bleu", "BLEU", str(old["signature"] or "")), ("chrf", "chrF", "")):
            value = float(old[f"valid_{name}"] or 0.0)
            scores[name] = Score(value, label=label, digits=1, signature=sign, count=count)
    return tree | {"best": old["best_loss"], "scores": as_tree(scores)}
