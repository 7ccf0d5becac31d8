"""Habits of heads: pure ones are named, and the numbers are those of a naive loop."""

import itertools
import math

import pytest
import torch

from regard.look.behaviour import behaviour, examples

T, S = 5, 7


def onto(place) -> torch.Tensor:
    """A head that looks at place(t) only."""
    weights = torch.zeros(T, S)
    for t in range(T):
        weights[t, min(max(place(t), 0), S - 1)] = 1.0
    return weights


@pytest.mark.parametrize(
    ("kind", "place"),
    [
        ("previous", lambda t: t - 1),
        ("next", lambda t: t + 1),
        ("same", lambda t: t),
        ("first", lambda t: 0),
        ("last", lambda t: S - 1),
    ],
)
def test_a_pure_habit_is_named(kind, place):
    found = behaviour(onto(place))
    assert found.kind == kind
    assert found.shares[kind] == pytest.approx(1.0)
    assert found.entropy == pytest.approx(0.0, abs=1e-6)


def test_even_weights_are_spread_and_have_the_highest_entropy():
    found = behaviour(torch.full((T, S), 1 / S))
    assert found.kind == "spread"
    assert found.entropy == pytest.approx(math.log2(S))
    assert found.shares["spread"] == pytest.approx(1.0)


def test_what_no_place_explains_is_content():
    assert behaviour(onto(lambda t: [5, 2, 0, 1, 6][t])).kind == "content"


def test_numbers_against_a_loop():
    weights = torch.rand(T, S).softmax(-1)
    rows = weights.double().tolist()
    found = behaviour(weights)
    entropy = sum(-sum(w * math.log2(w) for w in row) for row in rows) / T
    assert found.entropy == pytest.approx(entropy)
    assert found.shares["previous"] == pytest.approx(sum(rows[t][t - 1] for t in range(1, T)) / (T - 1))
    assert found.shares["last"] == pytest.approx(sum(row[-1] for row in rows) / T)


def test_a_row_that_sees_nothing_is_left_out():
    weights = onto(lambda t: 0)
    weights[2] = 0
    assert behaviour(weights).shares["first"] == pytest.approx(1.0)


def test_one_cell():
    assert behaviour(torch.ones(1, 1)).entropy == 0.0


def test_the_same_word_elsewhere_and_punctuation_are_named():
    pieces = ["▁the", "▁dog", ",", "▁The", "▁dog", "."]
    twins = torch.zeros(6, 6)
    for row, column in enumerate((3, 4, 0, 0, 1, 0)):
        twins[row, column] = 1.0
    found = behaviour(twins, pieces, pieces)
    assert found.kind == "twin"
    assert found.shares["twin"] == pytest.approx(1.0)  # a mark has no twin, and does not count
    marks = torch.tensor([[0.0, 0.0, 0.5, 0.0, 0.0, 0.3], [0.2, 0.1, 0.4, 0.1, 0.0, 0.2]]).repeat(3, 1)
    assert behaviour(marks, pieces, pieces).shares["marks"] == pytest.approx(0.7)
    assert behaviour(marks, pieces, pieces).kind == "marks"
    assert "twin" not in behaviour(twins, pieces, ["a", "b", "c", "d", "e", "f"]).shares
    assert set(behaviour(twins).shares) == {"previous", "next", "same", "first", "last", "spread"}


def test_examples_are_the_sharpest_pairs_of_words_that_speak(seen):
    """Against a loop over all pairs, of every head."""
    for one in seen.maps:
        queries, keys = (seen.side(name) for name in one.sides)

        def speaks(side, word):
            return any(map(str.isalnum, word.text)) and not side.special[word.first]

        for weights in seen.joined(one):
            pairs = [
                (float(weights[i, j]), word.text, other.text)
                for i, word in enumerate(queries.words)
                for j, other in enumerate(keys.words)
                if speaks(queries, word) and speaks(keys, other) and (queries is not keys or i != j)
            ]
            found = examples(weights, queries, keys)
            assert found[0].weight == pytest.approx(max(pairs)[0])
            assert (found[0].weight, found[0].query, found[0].key) in pairs
            assert all(one.weight >= other.weight for one, other in itertools.pairwise(found))
