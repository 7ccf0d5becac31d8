import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.config import TrainConfig
from regard.errors import UsageError
from regard.training.budget import VALIDATIONS, Budget
from regard.training.state import State

BATCHES = 11


def test_progress_by_steps_and_by_epochs() -> None:
    by_steps, by_epochs = Budget.of(TrainConfig(max_steps=40)), Budget.of(TrainConfig(max_epochs=4))
    state = State(step=10, epoch=1, position=0)
    assert by_steps.progress(state, BATCHES) == 0.25
    assert by_epochs.progress(state, BATCHES) == 0.25
    assert by_epochs.progress(State(epoch=3, position=BATCHES // 2 + 6), BATCHES) == 1.0


def test_progress_by_minutes_counts_from_the_first_step_and_leaves_time_to_close() -> None:
    budget = Budget.of(TrainConfig(minutes=10))
    closing = 3 + 0.05 * 540
    assert budget.progress(State(seconds=60, began=60), BATCHES) == 0
    assert budget.progress(State(seconds=600 - closing, began=60), BATCHES) == 1
    halfway = State(seconds=60 + (600 - closing - 60) / 2, began=60)
    assert budget.progress(halfway, BATCHES) == pytest.approx(0.5)


def test_closing_time_follows_what_validating_costs_up_to_a_tenth() -> None:
    budget = Budget.of(TrainConfig(minutes=10))
    assert budget.closing(State()) == 3 + 30  # not known yet: all that the last one may take
    assert budget.closing(State(valid_cost=4)) == 3 + 16
    assert budget.closing(State(valid_cost=500)) == 3 + 30
    assert Budget.of(TrainConfig(minutes=0.5)).closing(State()) == 3


def test_validations_have_a_twentieth_of_the_time_at_every_moment_and_the_last_one_another() -> None:
    budget = Budget.of(TrainConfig(minutes=10))
    state = State(seconds=160, began=60, validating=2)
    assert budget.allowance(state) == pytest.approx(3)
    assert budget.allowance(state, last=True) == pytest.approx(0.05 * 540)
    assert budget.allowance(State(seconds=590, began=60), last=True) == pytest.approx(0.05 * 540 / 2)
    assert budget.allowance(State(seconds=580, began=60), last=True) == pytest.approx(20)
    assert Budget.of(TrainConfig(max_steps=5)).allowance(State(seconds=9)) == math.inf


@given(
    st.floats(0.1, 1000), st.floats(0, 0.9), st.lists(st.floats(0.0, 5000), max_size=50), st.floats(0, 100)
)
def test_whatever_validations_cost_they_take_a_tenth_at_most(
    minutes: float, setting_up: float, steps: list[float], cost: float
) -> None:
    """Steps of any length; each validation takes what it costs or is cut at what it is allowed."""
    budget = Budget.of(TrainConfig(minutes=minutes))
    state = State(seconds=setting_up * minutes * 60, began=setting_up * minutes * 60)
    for step in steps:
        state.seconds += step
        if budget.over(state, BATCHES):
            break
        if budget.may_validate(state):
            spent = min(cost, max(0.0, budget.allowance(state)))
            state.validating, state.seconds, state.valid_cost = (
                state.validating + spent,
                state.seconds + spent,
                cost,
            )
        assert state.validating <= 0.051 * (state.seconds - state.began)
    spent = min(cost, budget.allowance(state, last=True))
    whole = max(minutes * 60, state.seconds) - state.began
    assert state.validating + spent <= 0.101 * whole


def test_a_budget_that_setting_up_has_used_is_over() -> None:
    assert Budget.of(TrainConfig(minutes=1)).over(State(seconds=70, began=70), BATCHES)


def test_the_first_bound_reached_ends_it() -> None:
    budget = Budget.of(TrainConfig(max_steps=40, max_epochs=2, minutes=1000))
    assert budget.progress(State(step=10, epoch=1), BATCHES) == 0.5
    assert not budget.over(State(step=39, epoch=1), BATCHES)
    assert budget.over(State(step=40, epoch=1), BATCHES)
    assert budget.over(State(step=22, epoch=2), BATCHES)


@given(st.integers(2, 400), st.sampled_from(["linear", "cosine", "inverse-sqrt", "constant"]))
def test_no_step_of_a_run_is_wasted_on_a_rate_of_zero(total: int, kind: str) -> None:
    train = TrainConfig(max_steps=total, schedule=kind, lr=1.0)
    budget = Budget.of(train)
    rates = [budget.learning_rate(train, State(step=step), BATCHES) for step in range(total)]
    assert min(rates) > 0
    assert max(rates) <= 1
    assert max(rates) == pytest.approx(1, rel=max(0.1, 20 / total))


def test_warmup_in_steps_lasts_so_many_steps_in_a_run_by_epochs() -> None:
    train = TrainConfig(max_epochs=10, warmup=20, lr=1.0, schedule="constant")
    budget = Budget.of(train)
    states = [State(step=s, epoch=s // BATCHES, position=s % BATCHES) for s in range(10 * BATCHES)]
    rates = [budget.learning_rate(train, state, BATCHES) for state in states]
    assert rates[9] == pytest.approx(9.5 / 20)
    assert rates[20] == 1


def test_validations_are_spread_evenly_and_end_with_the_run() -> None:
    budget = Budget.of(TrainConfig(max_steps=100))
    ticks = [budget.tick(State(step=step), BATCHES) for step in range(101)]
    assert [step for step in range(1, 101) if ticks[step] > ticks[step - 1]] == list(range(5, 101, 5))
    assert ticks[-1] == VALIDATIONS


def test_a_cut_validation_waits_until_it_is_worth_it() -> None:
    budget = Budget.of(TrainConfig(minutes=10))
    assert budget.may_validate(State(seconds=1))  # what one costs is not known
    assert budget.may_validate(State(seconds=100, validating=3, valid_cost=2))
    assert not budget.may_validate(State(seconds=100, validating=3.1, valid_cost=2))
    assert not budget.may_validate(State(seconds=149, valid_cost=400))
    assert budget.may_validate(State(seconds=150, valid_cost=400))  # a quarter of the run
    assert Budget.of(TrainConfig(max_steps=5)).may_validate(State(seconds=1, validating=99, valid_cost=9))


def test_a_short_run_is_saved_more_often() -> None:
    assert Budget.of(TrainConfig(minutes=2)).save_every(TrainConfig(minutes=2)) == 12
    assert Budget.of(TrainConfig(minutes=90)).save_every(TrainConfig(minutes=90)) == 120
    assert Budget.of(TrainConfig(max_steps=9)).save_every(TrainConfig(max_steps=9)) == 120


def test_a_warmup_longer_than_the_run_is_refused_with_both_numbers() -> None:
    with pytest.raises(UsageError, match=r"train.warmup \(4000\) .* train.max_steps \(100\)"):
        Budget.of(TrainConfig(max_steps=100, warmup=4000))
