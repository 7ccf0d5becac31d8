"""Error rates, held against jiwer."""

import jiwer
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.measure.wer import ErrorRates, distance, plain_words

TEXT = st.lists(st.sampled_from(["a", "bb", "cab", "d"]), min_size=1, max_size=9).map(" ".join)


@given(st.lists(st.tuples(TEXT, TEXT | st.just("")), min_size=1, max_size=5))
def test_rates_are_jiwers(pairs: list[tuple[str, str]]) -> None:
    wanted, given_ = (list(side) for side in zip(*pairs, strict=True))
    rates = ErrorRates(plain=False)
    for ours, theirs in zip(given_, wanted, strict=True):
        rates.add(ours, theirs)
    scores = rates.scores()
    assert scores["wer"].value == pytest.approx(jiwer.wer(wanted, given_))
    assert scores["cer"].value == pytest.approx(jiwer.cer(wanted, given_))


def test_nothing_said_and_nothing_written_is_no_error() -> None:
    rates = ErrorRates()
    rates.add("", "")
    assert rates.scores()["wer"].value == 0
    rates.add("ghost", "")
    assert rates.scores()["wer"].value == 1


def test_words_are_compared_without_case_and_signs() -> None:
    rates = ErrorRates()
    rates.add("It's ten fold", "it\u2019s TEN-fold!")
    assert rates.scores()["wer"].value == 0
    assert rates.exact == 1
    assert plain_words("'quoted' -- snake_case") == "quoted snake case"
    assert distance([], ["a", "b"]) == 2
