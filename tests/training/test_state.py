from hypothesis import given
from hypothesis import strategies as st

from regard.training.state import State, Window

numbers = st.floats(allow_nan=False, allow_infinity=False)


@given(numbers, numbers, st.none() | numbers, st.integers(0, 2**60))
def test_every_number_comes_back_exactly(seconds: float, loss: float, best: float | None, step: int) -> None:
    state = State(step=step, seconds=seconds, best_loss=best, ended="so", window=Window(loss, 3, seconds))
    assert State.from_json(state.to_json()) == state
