"""Times of words: the cheapest path, against trying every one."""

from itertools import combinations

import numpy as np
import pytest

from regard.tasks.speech.timing import aligned, smoothed, words_of
from regard.text.running import RunningText


@pytest.mark.parametrize("seed", range(6))
def test_the_path_is_the_cheapest(seed: int) -> None:
    weights = np.random.default_rng(seed).random((3, 8)).astype(np.float32)
    middle = weights - weights.mean(1, keepdims=True)
    gain = middle / middle.std(1, keepdims=True)
    best = max(
        sum(gain[row, cuts[row] : cuts[row + 1]].sum() for row in range(3))
        for starts in combinations(range(8), 3)
        for cuts in [(*starts, 8)]
    )
    spans = aligned(weights)
    assert sum(gain[row, a : b + 1].sum() for row, (a, b) in enumerate(spans)) == pytest.approx(
        best, abs=1e-5
    )
    assert [a for a, _ in spans[1:]] == [b + 1 for _, b in spans[:-1]]
    assert spans[-1, 1] == 7


def test_words_begin_where_their_letters_were_heard() -> None:
    tokenizer = RunningText.learn([], "bytes")
    ids = tokenizer.encode("ab c")
    weights = np.full((5, 20), 0.01, np.float32)
    for row, place in enumerate((5, 7, 9, 12, 16)):
        weights[row, place : place + 2] = 0.5
    words = words_of(ids, [np.log(0.5)] * 5, weights, tokenizer, 0.04, 1.0)
    assert [word.text for word in words] == ["ab", "c"]
    assert words[0].start == pytest.approx(1.2, abs=0.05)
    assert words[0].end == pytest.approx(1.36, abs=0.05)
    assert words[1].start == pytest.approx(1.48, abs=0.05)
    assert words[0].probability == pytest.approx(0.5)


def test_more_tokens_than_places_still_have_times() -> None:
    spans = aligned(np.ones((5, 2), np.float32))
    assert ((spans >= 0) & (spans < 2)).all()
    assert smoothed(np.ones((2, 2), np.float32)).shape == (2, 2)
