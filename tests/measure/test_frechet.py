"""The Fréchet distance against scipy's root of a matrix, and what must hold of it."""

import numpy as np
import pytest

from regard.measure.frechet import frechet


def blurred(seed: int, count: int = 211, width: int = 7) -> np.ndarray:
    random = np.random.default_rng(seed)
    return random.normal(size=(count, width)) @ random.normal(size=(width, width)) + random.normal(size=width)


def test_it_is_what_the_formula_says():
    scipy = pytest.importorskip("scipy.linalg")
    one, other = blurred(1), blurred(2, 307)
    a, b = np.cov(one, rowvar=False), np.cov(other, rowvar=False)
    apart = one.mean(0) - other.mean(0)
    wanted = apart @ apart + np.trace(a + b - 2 * scipy.sqrtm(a @ b).real)
    assert frechet(one, other) == pytest.approx(wanted)
    assert frechet(other, one) == pytest.approx(wanted)


def test_the_same_is_at_no_distance_and_a_shift_at_its_square():
    one = blurred(3)
    assert frechet(one, one) == pytest.approx(0, abs=1e-9)
    shift = np.arange(7.0)
    assert frechet(one, one + shift) == pytest.approx(shift @ shift)


def test_vectors_that_all_agree_in_a_direction_are_no_trouble():
    flat = blurred(4)
    flat[:, 2] = 1.0
    assert np.isfinite(frechet(flat, blurred(5)))
    assert frechet(np.zeros((3, 7)), np.zeros((2, 7))) == 0
