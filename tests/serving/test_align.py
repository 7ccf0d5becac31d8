"""Words, and what their tokens say of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.serving.align import Traced, words

# "ab c" was written for "x y": the two tokens of "ab" and the one of "c".
TRACED = Traced(
    "ab c",
    spans=((0, 1), (1, 2), (3, 4)),
    probabilities=(0.5, 0.5, 0.9),
    sources=((0, 1), (2, 3)),
    weights=((0.8, 0.2), (0.6, 0.4), (0.1, 0.9)),
)


def test_a_word_looks_as_its_tokens_do_on_average():
    assert TRACED.share((0, 2), (0, 1)) == pytest.approx(0.7)
    assert TRACED.share((3, 4), (2, 3)) == pytest.approx(0.9)
    assert TRACED.share((3, 4), (0, 3)) == pytest.approx(1.0)
    assert TRACED.share((2, 3), (0, 1)) == 0


def test_the_probability_of_a_word_is_that_of_all_its_tokens():
    assert TRACED.probability((0, 2)) == pytest.approx(0.25)
    assert TRACED.probability((3, 4)) == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don’t e-mail me!", ["Don’t", "e-mail", "me", "!"]),
        ("«Où?» 3.5 %", ["«", "Où", "?", "»", "3.5", "%"]),
        ("猫がいる。ok", ["猫", "が", "い", "る", "。", "ok"]),
        ("", []),
    ],
)
def test_words_of(text, expected):
    assert [text[start:end] for start, end in words(text)] == expected


@given(st.text(max_size=40))
def test_words_hold_everything_but_blanks(text):
    spans = words(text)
    assert "".join(text[a:b] for a, b in spans) == "".join(c for c in text if not c.isspace() or c.isalnum())
