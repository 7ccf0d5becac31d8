"""Sparse weights: written out, read row by row, refused where they are too many."""

import pytest
import torch

from regard.attention import record
from regard.attention.heads import MultiHead
from regard.attention.local import Local
from regard.attention.sparse import Part, SparseWeights
from regard.errors import UsageError

# Three queries in blocks of two; the second block sees one key less, and its keys are not in order.
VALUES = torch.tensor([[0.25, 0.75], [0.5, 0.5], [1.0, 0.0]])[None, None]
PLACES = torch.tensor([[0, 3], [2, -1]])[None, None]
WEIGHTS = SparseWeights((Part(0, VALUES, PLACES, 2),), (1, 1, 3, 4))


def test_written_out() -> None:
    expected = [[0.25, 0, 0, 0.75], [0.5, 0, 0, 0.5], [0, 0, 1.0, 0]]
    assert WEIGHTS.to_dense()[0, 0].tolist() == expected


def test_one_row() -> None:
    places, values = WEIGHTS.row(0, 0, 1)
    assert (places.tolist(), values.tolist()) == ([0, 3], [0.5, 0.5])
    places, values = WEIGHTS.row(0, 0, 2)
    assert (places.tolist(), values.tolist()) == ([2], [1.0])


def test_too_many_are_refused_with_the_numbers() -> None:
    with pytest.raises(UsageError, match="65536 x 65536"):
        SparseWeights(WEIGHTS.parts, (1, 1, 65536, 65536)).to_dense()


def test_a_tape_holds_them_without_gradients() -> None:
    heads = MultiHead(12, 3, kernel=Local(4))
    x = torch.randn(1, 600, 12)
    with record() as tape:
        heads(x, heads.keys_values(x))
    (weights,) = tape["attention"]
    assert isinstance(weights, SparseWeights)
    assert not weights.parts[0].values.requires_grad
    assert weights.shape == (1, 3, 600, 600)
    torch.testing.assert_close(weights.to_dense().sum(-1), torch.ones(1, 3, 600))
