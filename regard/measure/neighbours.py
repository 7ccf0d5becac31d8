"""How real made vectors are and how much of the real ones they reach, by balls around nearest neighbours.

Around each vector of a set lies a ball that ends at its k-th nearest neighbour in that set.

    precision   share of made vectors in some real ball             (Kynkäänniemi et al. 2019)
    recall      share of real vectors in some made ball
    density     real balls that a made vector lies in, over k       (Naeem et al. 2020)
    coverage    share of real balls that hold a made vector

Precision and density ask whether what was made looks real, recall and coverage whether all kinds were made.
Distances are computed in slices, so memory does not grow with the square. Used by `regard.tasks.gan`.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from regard.errors import DataError

Vectors = npt.NDArray[np.floating]
NEAREST = 5
_SLICE = 1024  # rows of distances that are held at once


def neighbourhood(real: Vectors, made: Vectors, nearest: int = NEAREST) -> dict[str, float]:
    """Precision, recall, density and coverage of made (M, D) against real (N, D) vectors.

    >>> line = np.arange(12.0)[:, None]
    >>> neighbourhood(line, line + 0.1, nearest=1)
    {'precision': 1.0, 'recall': 1.0, 'density': 1.9166666666666667, 'coverage': 1.0}
    """
    fewest = min(len(real), len(made))
    if fewest <= nearest:
        raise DataError(f"{fewest} pictures are too few to compare: more than {nearest} are needed")
    real_radii, made_radii = (_radii(each, nearest) for each in (real, made))
    inside = np.zeros(len(made), np.int64)  # real balls that each made vector lies in
    covered, recalled = np.zeros(len(real), bool), np.zeros(len(real), bool)
    for rows, distances in _distances(real, made):
        held = distances < real_radii[rows, None]  # (rows, M)
        inside += held.sum(0)
        covered[rows] = held.any(1)
        recalled[rows] = (distances < made_radii).any(1)
    return {
        "precision": float((inside > 0).mean()),
        "recall": float(recalled.mean()),
        "density": float(inside.mean() / nearest),
        "coverage": float(covered.mean()),
    }


def _radii(vectors: Vectors, nearest: int) -> npt.NDArray[np.float64]:
    """Squared distance of each vector to its k-th nearest other one: (N,)."""
    radii = np.empty(len(vectors))
    for rows, distances in _distances(vectors, vectors):
        distances[np.arange(len(distances)), np.arange(rows.start, rows.stop)] = -1.0  # itself comes first
        radii[rows] = np.partition(distances, nearest, axis=1)[:, nearest]
    return radii


def _distances(one: Vectors, other: Vectors) -> Iterator[tuple[slice, npt.NDArray[np.float64]]]:
    """Squared distances (rows, M), some rows at a time."""
    one, other = one.astype(np.float64), other.astype(np.float64)
    centre = other.mean(0)  # rounding is least where vectors are short
    one, other = one - centre, other - centre
    squares = np.square(other).sum(1)
    for start in range(0, len(one), _SLICE):
        rows = one[start : start + _SLICE]
        found = np.square(rows).sum(1)[:, None] + squares - 2 * rows @ other.T
        yield slice(start, start + len(rows)), np.maximum(found, 0.0)
