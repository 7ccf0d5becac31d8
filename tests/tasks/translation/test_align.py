"""Words, and what their tokens say of them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.tasks.translation.align import Tokens, Traced, meetings, words

# "ab c" was written for "x y": the two tokens of "ab" and the one of "c".
TRACED = Traced.of(
    Tokens("ab c", [(0, 1), (1, 2), (3, 4)]),
    Tokens("x y", [(0, 1), (2, 3)]),
    [0.5, 0.5, 0.9],
    [[0.8, 0.2], [0.6, 0.4], [0.1, 0.9]],
)


def test_a_word_looks_as_its_tokens_do_on_average():
    assert list(TRACED.home) == [0, 1]
    assert list(TRACED.share) == pytest.approx([0.7, 0.9])
    assert list(TRACED.seen) == [0, 1]


def test_the_probability_of_a_word_is_that_of_all_its_tokens():
    assert list(TRACED.sure) == pytest.approx([0.25, 0.9])


def overlap(one, other):
    return max(0, min(one[1], other[1]) - max(one[0], other[0]))


def naive_share(written, source, weights, word, place):
    """How much of what the tokens of `word` looked at lies in `place`, as it is said in words."""
    rows = [number for number, span in enumerate(written.spans) if overlap(span, word)]
    parts = [overlap(span, place) / max(1, span[1] - span[0]) for span in source.spans]
    total = sum(weights[row][s] * part for row in rows for s, part in enumerate(parts))
    return total / len(rows) if rows else 0.0


@st.composite
def cut_texts(draw):
    """A text in tokens: some cross words, some are parts of one character, some hold nothing."""
    text = draw(st.text(st.sampled_from("ab .,狗-"), min_size=1, max_size=13))
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=11)))
    spans = list(zip([0, *cuts], [*cuts, len(text)], strict=True))
    spans += [spans[-1]] * draw(st.integers(0, 2))
    return Tokens(text, spans)


@given(cut_texts(), cut_texts(), st.integers(0, 99))
def test_it_is_what_a_loop_over_all_pairs_finds(written, source, seed):
    rng = np.random.default_rng(seed)
    weights = rng.dirichlet([0.5] * len(source.spans), len(written.spans))
    chances = rng.random(len(written.spans)).tolist()
    traced = Traced.of(written, source, chances, weights)
    places, ours = words(source.text) or [(0, len(source.text))], words(written.text)
    table = [[naive_share(written, source, weights, word, place) for place in places] for word in ours]
    assert len(traced.home) == len(traced.sure) == len(ours)
    for number, (word, row) in enumerate(zip(ours, table, strict=True)):
        assert row[traced.home[number]] == pytest.approx(max(row), abs=1e-5)
        assert traced.share[number] == pytest.approx(max(row), abs=1e-5)
        held = [p for p, span in zip(chances, written.spans, strict=True) if overlap(span, word)]
        assert traced.sure[number] == pytest.approx(np.prod(held), abs=1e-5)
    for number in range(len(places) if ours else 0):
        column = [row[number] for row in table]
        assert column[traced.seen[number]] == pytest.approx(max(column), abs=1e-5)
    pairs = {(t, w) for t, a in enumerate(written.spans) for w, b in enumerate(ours) if overlap(a, b)}
    assert set(meetings(written.spans, ours)) == pairs


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
