"""The Fréchet distance between two sets of vectors, each taken for a normal distribution.

    |m - n|² + tr(A + B - 2 (A^½ B A^½)^½)      m, n means; A, B covariances (Dowson and Landau 1982)

Zero where mean and covariance are the same. Between features of real and of made pictures it says how far
they are apart. Whose features they are belongs to its name: numbers of other features are other numbers, and
only those of the Inception network may be called FID (Heusel et al. 2017). Fewer vectors give a larger
distance, so only sets of one size are compared. Used by `regard.tasks.gan`.
"""

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.floating]


def frechet(one: Vectors, other: Vectors) -> float:
    """The distance between (N, D) and (M, D); each needs two vectors.

    >>> frechet(np.array([[0.0], [2.0]]), np.array([[3.0], [5.0]]))
    9.0
    """
    a, b = (np.atleast_2d(np.cov(each.astype(np.float64), rowvar=False)) for each in (one, other))
    apart = one.astype(np.float64).mean(0) - other.astype(np.float64).mean(0)
    half = _root(a)
    shared = np.sqrt(np.clip(np.linalg.eigvalsh(half @ b @ half), 0, None)).sum()
    return max(0.0, float(apart @ apart + np.trace(a) + np.trace(b) - 2 * shared))


def _root(matrix: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """The symmetric root of a covariance; what rounding made negative is zero."""
    values, vectors = np.linalg.eigh(matrix)
    rooted: npt.NDArray[np.float64] = (vectors * np.sqrt(np.clip(values, 0, None))) @ vectors.T
    return rooted
