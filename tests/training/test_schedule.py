import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.training.schedule import DEFAULT_WARMUP, factor, warmup_share

KINDS = ("linear", "cosine", "inverse-sqrt", "constant")
shares = st.floats(0, 1)


@given(st.sampled_from(KINDS), shares, st.floats(0.001, 0.9))
def test_always_between_zero_and_one(kind: str, progress: float, warmup: float) -> None:
    assert 0 <= factor(kind, progress, warmup) <= 1


@given(st.sampled_from(KINDS), shares, shares, st.floats(0.001, 0.9))
def test_rises_in_the_warmup_and_never_after(kind: str, a: float, b: float, warmup: float) -> None:
    early, late = sorted((a, b))
    if late <= warmup:
        assert factor(kind, early, warmup) <= factor(kind, late, warmup)
    if early >= warmup:
        assert factor(kind, early, warmup) >= factor(kind, late, warmup)


@pytest.mark.parametrize("kind", KINDS)
def test_peak_at_the_end_of_the_warmup(kind: str) -> None:
    assert factor(kind, 0.2, 0.2) == pytest.approx(1)
    assert factor(kind, 0.2 - 1e-9, 0.2) == pytest.approx(1)


@pytest.mark.parametrize(
    ("kind", "end"), [("linear", 0), ("cosine", 0), ("inverse-sqrt", 0.5), ("constant", 1)]
)
def test_where_it_ends(kind: str, end: float) -> None:
    assert factor(kind, 1.0, 0.25) == pytest.approx(end)


def test_inverse_sqrt_is_the_papers_shape() -> None:
    total, warmup = 1000, 100
    for step in (1, 50, 100, 400, 1000):
        paper = min(step**-0.5, step * warmup**-1.5) / warmup**-0.5
        assert factor("inverse-sqrt", step / total, warmup / total) == pytest.approx(paper)


def test_cosine_half_way_down_is_a_half() -> None:
    assert factor("cosine", 0.6, 0.2) == pytest.approx(0.5)
    assert factor("cosine", 0.4, 0.2) == pytest.approx(0.5 * (1 + math.cos(math.pi / 4)))


def test_without_warmup_it_starts_at_the_peak() -> None:
    assert [factor(kind, 0.0, 0.0) for kind in KINDS] == [1.0] * 4


@given(st.integers(1, 500), st.integers(0, 999))
def test_warmup_in_steps_is_exact_where_progress_goes_with_steps(steps: int, step: int) -> None:
    done = step + 0.5
    assert warmup_share(steps, done=done, progress=done / 1000) == pytest.approx(steps / 1000)


def test_warmup_of_no_steps_is_a_twentieth() -> None:
    assert warmup_share(0, done=7.5, progress=0.3) == DEFAULT_WARMUP == 0.05
