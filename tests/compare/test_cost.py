"""Exponents of times that are known, and the order in which things are measured. No time is asserted."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.compare import cost
from regard.compare.cost import Measured, Sizes, clock, exponent, exponents, fit, measure, sweep
from regard.compare.layers import Contender, contenders

TINY = Sizes((8, 16, 32), (4, 8))


@given(
    power=st.floats(-1, 3),
    factor=st.floats(1e-6, 10),
    sizes=st.lists(st.integers(1, 10_000), min_size=2, max_size=7, unique=True),
)
def test_a_power_law_gives_its_power(power, factor, sizes):
    assert fit(sizes, [factor * size**power for size in sizes]) == pytest.approx(power, abs=1e-6)


def test_the_tail_decides():
    times = {size: 1.0 + 1e-9 * size**2 for size in (1, 2, 4)} | {2**n: 4.0**n for n in (20, 21, 22)}
    assert exponent(times) == pytest.approx(2)
    assert exponent({64: 1.0}) is None


def test_sweeps_and_their_exponents():
    each = Measured(contenders()[0])
    each.layer = {point: point[0] * point[1] ** 2 * 1e-9 for point in TINY.points(each.contender)}
    assert list(sweep(each.layer, 0, TINY.width)) == [8, 16, 32]
    assert exponents(each, TINY, each.layer) == pytest.approx((1, 2))
    assert each.term is each.layer


def test_sizes_are_two_sweeps():
    convolution, attention = contenders()[0], contenders()[3]
    sizes = Sizes((64, 128, 256), (4, 8, 16))
    assert sizes.points(convolution) == [(64, 8), (128, 4), (128, 8), (128, 16), (256, 8)]
    assert {point for point in sizes.points(attention) if point[1] != 8} == {(256, 4), (256, 16)}


def test_everything_is_measured_on_one_thread(monkeypatch):
    monkeypatch.setattr(cost, "LEAST", 0.0)
    monkeypatch.setattr(cost, "LONG_PATHS", (8,))
    monkeypatch.setattr(cost, "LONG_CHAINS", (8,))
    monkeypatch.setattr(cost, "PATHS", (8,))
    before, heard = torch.get_num_threads(), []
    found = measure(TINY, seconds=1000, said=lambda text, share, **_: heard.append(share))
    assert torch.get_num_threads() == before
    assert heard == sorted(heard)
    for each in found:
        assert not each.failed
        assert set(each.layer) == set(TINY.points(each.contender))
        assert set(each.core) == (set(each.layer) if each.contender.core else set())
        assert all(seconds > 0 for seconds in each.layer.values())
        assert each.chains.keys()
        assert all(each.paths.values())


def test_one_that_fails_does_not_end_the_rest(monkeypatch):
    def broken(width):
        raise RuntimeError("no such\nlayer")

    good, theory = contenders()[0], contenders()[0].theory
    bad = Contender("bad", theory, broken, lambda width, n: broken(width))
    monkeypatch.setattr(cost, "contenders", lambda longest: [bad, good])
    monkeypatch.setattr(cost, "LEAST", 0.0)
    found = measure(TINY, seconds=1000)
    assert found[0].failed == "RuntimeError: no such layer"
    assert found[1].layer
    assert not found[1].failed


def test_when_time_is_up_no_point_is_begun(monkeypatch):
    monkeypatch.setattr(cost, "contenders", lambda longest: contenders()[:1])
    (found,) = measure(TINY, seconds=-1)
    assert found.layer == {}
    assert exponents(found, TINY, found.layer) == (None, None)


def test_the_clock_counts_calls(monkeypatch):
    ticks = iter([0.0, 0.001, 1.0, 1.0, 1.3, 1.5])
    monkeypatch.setattr(cost.time, "thread_time", lambda: next(ticks))
    monkeypatch.setattr(cost, "LEAST", 0.4)
    calls = []
    assert clock(calls.append, torch.zeros(1)) == pytest.approx(0.25)
    assert len(calls) == 3
