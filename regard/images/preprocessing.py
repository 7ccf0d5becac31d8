"""How a model's pictures are made: their shape, and the mean and spread that numbers are measured in.

Kept in the model folder as preprocessing.json, so that a raw picture goes in. Before this file: `picture.py`;
after it: the tasks of pictures.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import numpy.typing as npt

from regard.errors import ModelError
from regard.foreign import loads
from regard.images.picture import Fit, Pixels

PREPROCESSING = "preprocessing.json"
_MEASURED = 5000  # pictures that mean and spread are taken of


@dataclass(frozen=True)
class Preprocessing:
    """x = (pixel / 255 - mean) / spread, a number a channel."""

    fit: Fit
    mean: tuple[float, ...]
    spread: tuple[float, ...]

    @classmethod
    def of(cls, fit: Fit, pictures: Pixels) -> "Preprocessing":
        """Mean and spread of some of these pictures (N, C, H, W)."""
        some = np.linspace(0, len(pictures) - 1, min(_MEASURED, len(pictures))).astype(int)
        values = pictures[some].astype(np.float64) / 255
        spread = np.maximum(values.std((0, 2, 3)), 1e-3)
        return cls(fit, tuple(values.mean((0, 2, 3)).round(6).tolist()), tuple(spread.round(6).tolist()))

    def normalised(self, pictures: Pixels) -> npt.NDArray[np.float32]:
        """Pictures (..., C, H, W) as a model is fed them."""
        mean, spread = (np.array(each, np.float32)[:, None, None] for each in (self.mean, self.spread))
        return (pictures.astype(np.float32) / np.float32(255) - mean) / spread

    def to_json(self) -> bytes:
        """For the folder."""
        return (json.dumps(asdict(self), indent=2) + "\n").encode()

    @classmethod
    def from_json(cls, data: bytes, where: str) -> "Preprocessing":
        """What a folder holds; ModelError where that is something else."""
        try:
            tree = loads(data)
            fit = Fit(**tree["fit"])
            mean, spread = (_numbers(tree[name], fit.channels) for name in ("mean", "spread"))
            whole = all(type(side) is int and 0 < side <= 4096 for side in fit.shape)
        except (KeyError, TypeError, ValueError) as error:
            raise ModelError(
                f"{where} has no {PREPROCESSING} that can be read; copy the folder again"
            ) from error
        if not whole or min(spread) <= 0:
            raise ModelError(
                f"{where}: {PREPROCESSING} asks for pictures that cannot be; copy the folder again"
            )
        return cls(fit, mean, spread)


def _numbers(values: Sequence[float], count: int) -> tuple[float, ...]:
    if len(values) != count:
        raise ValueError("as many numbers as channels")
    return tuple(map(float, values))
