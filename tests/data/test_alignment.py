"""Slips are found where they are, and only there."""

import numpy as np
import pytest

from regard.data.alignment import Slip, SlipDetector, _correlation, best_shift


def lengths(count: int, noise: float, seed: int = 1) -> tuple[list[int], list[int]]:
    """Line lengths of a text and of a translation that is about as long."""
    random = np.random.default_rng(seed)
    src = random.integers(10, 120, count)
    tgt = src * np.exp(noise * random.standard_normal(count))
    return src.tolist(), tgt.astype(int).tolist()


def found(src: list[int], tgt: list[int]) -> Slip | None:
    detector = SlipDetector()
    for pair in zip(src, tgt, strict=False):
        detector.add(*pair)
    return detector.slip()


@pytest.mark.parametrize("noise", [0.1, 0.3, 2.0])
def test_aligned_texts_have_no_slip(noise: float) -> None:
    assert found(*lengths(20_000, noise)) is None


@pytest.mark.parametrize("shift", [-3, -1, 1, 2])
def test_a_slip_is_found_near_its_place(shift: int) -> None:
    src, tgt = lengths(10_000, 0.2)
    if shift > 0:
        tgt[4200:4200] = [60] * shift
    else:
        del tgt[4200 : 4200 - shift]
    slip = found(src, tgt)
    assert slip is not None
    assert slip.shift == shift
    assert 4001 <= slip.line <= 4501
    assert slip.lines >= 5000


def test_unrelated_or_constant_lines_tell_nothing() -> None:
    src, _ = lengths(5000, 0.1, seed=1)
    other, _ = lengths(5000, 0.1, seed=2)
    assert found(src, other) is None
    assert found([7] * 5000, src) is None


def test_sorted_lines_fit_any_shift_and_are_not_accused() -> None:
    src, _ = lengths(5000, 0.1)
    assert found(sorted(src), sorted(src)[1:]) is None


def test_best_shift_is_the_one_that_puts_them_right() -> None:
    src, tgt = (np.log1p(side) for side in lengths(503, 0.1))
    assert best_shift(src, tgt) == 0
    assert best_shift(src[2:], tgt[:-2]) == 2
    assert best_shift(src[:-3], tgt[3:]) == -3


def test_correlation_is_pearsons() -> None:
    src, tgt = (np.log1p(side) for side in lengths(211, 0.5))
    assert _correlation(src, tgt) == pytest.approx(np.corrcoef(src, tgt)[0, 1])


def test_a_slip_in_words() -> None:
    assert str(Slip(1501, 1, 500)) == "from about line 1,501 the targets fit 1 line later better"
    assert str(Slip(1, -2, 500)) == "from about line 1 the targets fit 2 lines earlier better"
