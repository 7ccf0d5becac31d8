"""Pictures of stripes, and a generator of them that was trained for a moment, for what is around it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regard.tasks.gan import TASK, judge, scores, validation
from regard.training.run import Asked, train

SETTINGS: dict[str, Any] = {
    "model.d_model": 16,
    "model.n_heads": 2,
    "gan.noise": 5,
    "train.batch_tokens": 8,
    "train.max_steps": 6,
    "train.valid_every": 3,
    "train.save_every": 0.0,
    "train.precision": "fp32",
    "train.threads": 1,
}


def write_stripes(path: Path, count: int = 70, side: int = 8) -> Path:
    """Pictures of lying and of standing stripes, in a file."""
    random = np.random.default_rng(1)
    pictures = np.zeros((count, side, side), np.uint8)
    names = []
    for number, picture in enumerate(pictures):
        start, light = random.integers(side - 2), random.integers(128, 256)
        if number % 2:
            picture[start : start + 2] = light
        else:
            picture[:, start : start + 2] = light
        names.append("lying" if number % 2 else "standing")
    np.savez(path, images=pictures, labels=np.array(names))
    return path


def hasten(patch: pytest.MonkeyPatch) -> None:
    """Measurements of a moment."""
    patch.setattr(judge, "BATCH", 16)
    patch.setattr(scores, "EPOCHS", 1)
    patch.setattr(validation, "TAUGHT", 32)


def train_stripes(folder: Path, pictures: Path, **more: Any) -> Path:
    """A folder as `regard train` leaves it; little is measured."""
    with pytest.MonkeyPatch.context() as patch:
        hasten(patch)
        train(TASK, TASK.read([pictures]), Asked(folder, overrides=SETTINGS | more, quiet=True))
    return folder


@pytest.fixture(scope="session")
def stripes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pictures."""
    return write_stripes(tmp_path_factory.mktemp("pictures") / "stripes.npz")


@pytest.fixture(scope="session")
def generator(stripes: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The generator's folder."""
    return train_stripes(tmp_path_factory.mktemp("gan") / "model", stripes)
