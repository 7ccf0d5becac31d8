"""Precision, recall, density and coverage against loops that say what they mean."""

import numpy as np
import pytest

from regard.errors import DataError
from regard.measure import neighbours
from regard.measure.neighbours import neighbourhood


def naive(real: np.ndarray, made: np.ndarray, nearest: int) -> dict[str, float]:
    """One pair of vectors at a time."""

    def radius(vectors: np.ndarray, i: int) -> float:
        return sorted(np.linalg.norm(vectors[i] - vectors[j]) for j in range(len(vectors)) if j != i)[
            nearest - 1
        ]

    of_real = [radius(real, i) for i in range(len(real))]
    of_made = [radius(made, j) for j in range(len(made))]
    apart = [[float(np.linalg.norm(x - y)) for y in made] for x in real]
    balls = [sum(apart[i][j] < of_real[i] for i in range(len(real))) for j in range(len(made))]
    return {
        "precision": sum(count > 0 for count in balls) / len(made),
        "recall": sum(any(apart[i][j] < of_made[j] for j in range(len(made))) for i in range(len(real)))
        / len(real),
        "density": sum(balls) / (nearest * len(made)),
        "coverage": sum(any(apart[i][j] < of_real[i] for j in range(len(made))) for i in range(len(real)))
        / len(real),
    }


@pytest.mark.parametrize("nearest", [1, 3])
@pytest.mark.parametrize("shift", [0.0, 1.0, 5.0])
def test_they_are_what_loops_count(nearest: int, shift: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "_SLICE", 11)  # more than one slice, and a last one that is shorter
    random = np.random.default_rng(nearest)
    real, made = random.normal(size=(37, 3)), random.normal(size=(29, 3)) * 0.7 + shift
    assert neighbourhood(real, made, nearest) == pytest.approx(naive(real, made, nearest))


def test_one_kind_alone_is_precise_and_covers_little() -> None:
    random = np.random.default_rng(1)
    real = np.concatenate([random.normal(size=(50, 2)), random.normal(size=(50, 2)) + 100])
    made = random.normal(size=(100, 2)) * 0.5
    found = neighbourhood(real, made)
    assert found["precision"] > 0.95
    assert found["coverage"] <= 0.5


def test_far_from_the_origin_rounding_does_not_decide() -> None:
    random = np.random.default_rng(2)
    real, made = random.normal(size=(41, 3)), random.normal(size=(43, 3))
    assert neighbourhood(real + 1e6, made + 1e6, 3) == pytest.approx(naive(real, made, 3))


def test_too_few_are_refused() -> None:
    with pytest.raises(DataError, match="5 pictures are too few to compare: more than 5 are needed"):
        neighbourhood(np.zeros((5, 2)), np.zeros((9, 2)))
