"""What drawings are worth, beside real pictures: measured on the features of our own frozen classifier.

    frechet              distance of features from those of real pictures; no FID, whose features are others
    precision, density   whether drawings look real
    recall, coverage     whether all kinds of real ones are drawn
    classified           share of drawings that the classifier takes for the class they were asked for
    taught               share of real pictures that a classifier tells right that has seen drawings alone

Real pictures that training saw, put in the place of drawings, say what a perfect generator would get: the
same number of them, by the same measures. Used by `validation.py` and `regard evaluate`.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from regard.measure.frechet import frechet
from regard.measure.neighbours import neighbourhood
from regard.measure.score import Score
from regard.tasks.gan.judge import Judge, train_judge
from regard.tasks.gan.pixels import Labels, Pixels

OWN = "features of the folder's own classifier"
EPOCHS = 12  # of a classifier that learns from drawings


@dataclass(frozen=True)
class Gallery:
    """Pictures (N, C, S, S) in bytes, and their labels (N,) if they have any."""

    pictures: Pixels
    labels: Labels | None

    def __len__(self) -> int:
        return len(self.pictures)

    def take(self, rows: npt.NDArray[Any]) -> "Gallery":
        """Some of them."""
        return Gallery(self.pictures[rows], None if self.labels is None else self.labels[rows])

    def some(self, count: int) -> "Gallery":
        """At most so many, evenly spread."""
        if len(self) <= count:
            return self
        return self.take(np.linspace(0, len(self) - 1, count).round().astype(np.int64))


class Reference:
    """Real pictures that others are held against, as their judge sees them."""

    def __init__(self, judge: Judge, real: Gallery) -> None:
        self.judge, self.real = judge, real
        self._features: dict[int, npt.NDArray[np.float32]] = {}

    def features(self, count: int) -> npt.NDArray[np.float32]:
        """Of at most so many, evenly spread; kept, for they do not change."""
        if count not in self._features:
            self._features[count] = self.judge.look(self.real.some(count).pictures)[0]
        return self._features[count]

    def compare(self, made: Gallery) -> dict[str, Score]:
        """The scores of what was made, beside as many real ones; all but `taught`."""
        features = self.features(len(made))
        drawn, classes = self.judge.look(made.pictures)
        found = {"frechet": frechet(features, drawn)}
        if made.labels is not None:
            found["classified"] = float((classes == made.labels).mean())
        around = neighbourhood(features, drawn)
        found |= {name: around[name] for name in ("coverage", "density", "precision", "recall")}
        return {name: named(name, value, len(made)) for name, value in found.items()}


def taught(made: Gallery, real: Gallery, classes: int, *, seconds: float | None, seed: int = 1) -> Score:
    """How many real pictures a classifier tells right that learned from what was made alone."""
    assert made.labels is not None
    assert real.labels is not None
    learner = train_judge(made.pictures, made.labels, classes, epochs=EPOCHS, seconds=seconds, seed=seed)
    _, found = learner.look(real.pictures)
    return named("taught", float((found == real.labels).mean()), len(real))


_LABELS = {
    "frechet": "Fréchet distance (own classifier)",
    "classified": "classified as asked",
    "taught": "a classifier taught by drawings",
}


def named(name: str, value: float, count: int) -> Score:
    """A score as people know it."""
    signature = OWN if name == "frechet" else ""
    return Score(
        value,
        higher=name != "frechet",
        label=_LABELS.get(name, ""),
        digits=3,
        signature=signature,
        count=count,
    )
