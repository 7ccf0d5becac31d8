"""Scores of labels against naive loops over the labels themselves."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from regard.measure.labels import confusion, label_scores

L = 5
PAIRS = st.lists(st.tuples(st.integers(0, L - 1), st.integers(0, L - 1)), min_size=1, max_size=60)


def naive_f1(pairs: list[tuple[int, int]]) -> float:
    """Precision and recall of each label, by counting."""
    found = []
    for label in sorted({each for pair in pairs for each in pair}):
        right = sum(1 for wanted, given in pairs if wanted == given == label)
        said = sum(1 for _, given in pairs if given == label)
        was = sum(1 for wanted, _ in pairs if wanted == label)
        precision, recall = right / said if said else 0.0, right / was if was else 0.0
        found.append(2 * precision * recall / (precision + recall) if right else 0.0)
    return sum(found) / len(found)


@given(PAIRS)
def test_scores_are_what_counting_finds(pairs: list[tuple[int, int]]) -> None:
    table = confusion([wanted for wanted, _ in pairs], [given for _, given in pairs], L)
    scores = label_scores(table)
    assert np.isclose(scores["macro_f1"].value, naive_f1(pairs))
    assert np.isclose(scores["accuracy"].value, sum(a == b for a, b in pairs) / len(pairs))
    for row in range(L):
        for column in range(L):
            assert table[row, column] == pairs.count((row, column))
