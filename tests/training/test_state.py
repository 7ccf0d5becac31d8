import json

from hypothesis import given
from hypothesis import strategies as st

from regard.training.state import State, Window

numbers = st.floats(allow_nan=False, allow_infinity=False)


@given(numbers, numbers, st.none() | numbers, st.integers(0, 2**60))
def test_every_number_comes_back_exactly(seconds: float, loss: float, best: float | None, step: int) -> None:
    state = State(step=step, seconds=seconds, best=best, ended="so", window=Window(loss, 3, seconds))
    assert State.from_json(state.to_json()) == state


def test_a_state_of_the_first_version_is_read() -> None:
    tree = {"step": 5, "valid_loss": 1.5, "valid_bleu": 31.0, "valid_chrf": 50.0, "valid_pairs": 7}
    tree |= {
        "signature": "s",
        "best_loss": 1.25,
        "best_step": 4,
        "window": {"loss": 1.0, "tokens": 3, "seconds": 2.0},
    }
    state = State.from_json(json.dumps(tree))
    assert (state.step, state.best, state.best_step) == (5, 1.25, 4)
    assert {name: (score.value, score.higher, score.count) for name, score in state.scores.items()} == {
        "loss": (1.5, False, 0),
        "bleu": (31.0, True, 7),
        "chrf": (50.0, True, 7),
    }
    assert state.scores["bleu"].signature == "s"
    assert state.standing == "valid BLEU 31.0"
