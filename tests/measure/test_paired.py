"""Better or luckier: a system against itself is luck, against nonsense it is not; sacreBLEU agrees."""

import random

import pytest

from regard.errors import DataError
from regard.measure.bleu import translation_scores
from regard.measure.paired import paired_bleu

WORDS = ("the", "small", "dog", "runs", "over", "a", "green", "field", "and", "barks", "at", "every", "bird")


def lines(count: int, seed: int) -> list[str]:
    draw = random.Random(seed)
    return [" ".join(draw.choice(WORDS) for _ in range(9)) for _ in range(count)]


def test_the_same_is_luck_and_nonsense_is_not():
    references = lines(41, 1)
    worse = [line.replace("the", "of").replace("a", "o") for line in references]
    same = paired_bleu(worse, worse, references)
    assert same.gain == 0
    assert same.p_value > 0.5
    better = paired_bleu(references, worse, references)
    assert better.bleu == pytest.approx(100)
    assert better.other == pytest.approx(translation_scores(worse, references)["bleu"].value)
    assert better.p_value < 0.01
    assert paired_bleu(worse, references, references).gain == -better.gain


def test_lines_must_match():
    with pytest.raises(DataError, match="2 and 1 outputs for 2"):
        paired_bleu(["a", "b"], ["a"], ["a", "b"])
