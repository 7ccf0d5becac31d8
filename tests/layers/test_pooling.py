"""Pooling against naive loops, and padding that no word of it sees."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.layers.pooling import pool
from regard.tasks.encoder import POOLINGS

B, S, D = 3, 7, 5


def naive(rows: list[list[list[float]]], word: str) -> list[list[float]]:
    """A row is a list of vectors."""
    found = []
    for row in rows:
        columns = list(zip(*row, strict=True))
        if word == "first":
            found.append(list(row[0]))
        elif word == "max":
            found.append([max(column) for column in columns])
        else:
            found.append([sum(column) / len(column) for column in columns])
    return found


@pytest.mark.parametrize("word", POOLINGS)
@settings(max_examples=30)
@given(lengths=st.lists(st.integers(1, S), min_size=B, max_size=B), seed=st.integers(0, 99))
def test_it_is_what_a_loop_finds_and_padding_is_not_seen(word: str, lengths: list[int], seed: int) -> None:
    hidden = torch.randn(B, S, D, generator=torch.Generator().manual_seed(seed))
    real = torch.arange(S) < torch.tensor(lengths)[:, None]
    wanted = naive([hidden[i, :n].tolist() for i, n in enumerate(lengths)], word)
    hidden[~real] = 1e4
    assert torch.allclose(pool(hidden, real, word), torch.tensor(wanted), atol=1e-6)
