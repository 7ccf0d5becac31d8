"""Places in a dependency tree against walks through it, word by word."""

import pytest
import torch

from regard.attention.absolute import sinusoids
from regard.attention.structural import Depth, Structural, Trees
from regard.errors import DataError

# "the old cat sat down": the -> cat, old -> cat, cat -> sat, sat -> root, down -> sat; "sat" is two tokens.
HEADS = [2, 2, 3, 6, 4, 3, 99]
PADDED = torch.tensor([HEADS, [1, 3, 0 + 2, 99, 99, 99, 99]])


def way_up(heads: list[int], token: int) -> list[int]:
    """The words from a token's own to the root, each by its first token."""
    while heads[token] == token:
        token -= 1
    way = [token]
    while heads[way[-1]] < len(heads):
        way.append(heads[way[-1]])
    return way


def walked(heads: list[int], i: int, j: int) -> int:
    mine, other = way_up(heads, i), way_up(heads, j)
    if mine[0] in other or other[0] in mine:
        return len(mine) - len(other)
    return ((i > j) - (i < j)) * (len(mine) + len(other) - 2)


def test_depths_and_distances() -> None:
    found = Trees.of(PADDED)
    assert found.depth.tolist() == [[3, 3, 2, 1, 1, 2, 0], [2, 1, 1, 0, 0, 0, 0]]
    for i in range(7):
        for j in range(7):
            assert found.distance[0, i, j].item() == walked(HEADS, i, j), (i, j)
    assert torch.equal(found.distance[0], -found.distance[0].T)


def test_padding_changes_no_distance() -> None:
    alone = Trees.of(PADDED[1:, :4])
    assert torch.equal(Trees.of(PADDED).distance[1, :4, :4], alone.distance[0])


@torch.no_grad()
def test_bias_and_values_take_the_vector_of_the_distance() -> None:
    torch.manual_seed(0)
    positions, q, weights = Structural(11, 2), torch.randn(2, 3, 7, 11), torch.rand(2, 3, 7, 7)
    distance = Trees.of(PADDED).distance.clamp(-2, 2) + 2
    bias, values = torch.zeros(2, 3, 7, 7), torch.zeros(2, 3, 7, 11)
    for b in range(2):
        for i in range(7):
            for j in range(7):
                d = distance[b, i, j]
                bias[b, :, i, j] = q[b, :, i] @ positions.key_embedding[d] / 11**0.5
                values[b, :, i] += weights[b, :, i, j, None] * positions.value_embedding[d]
    trees = Trees.of(PADDED)
    torch.testing.assert_close(positions.bias(q, 7, places=trees), bias, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(positions.gather(weights, places=trees), values, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_depth_and_place_are_joined() -> None:
    positions, x, table = Depth(10), torch.randn(2, 7, 10), sinusoids(8, 10)
    out = positions.embed(x, places=Trees.of(PADDED))
    depth = Trees.of(PADDED).depth
    for b in range(2):
        for i in range(7):
            both = torch.cat([table[i], table[depth[b, i]]])
            expected = x[b, i] + torch.tanh(positions.fuse.weight @ both + positions.fuse.bias)
            torch.testing.assert_close(out[b, i], expected, atol=1e-5, rtol=1e-5)


def test_without_trees_there_is_one_line() -> None:
    with pytest.raises(DataError, match="--parses"):
        Depth(4).embed(torch.zeros(1, 2, 4))
    with pytest.raises(DataError, match="--parses"):
        Structural(4, 2).bias(torch.zeros(1, 2, 7, 4), 7)


def test_a_circle_is_refused() -> None:
    with pytest.raises(DataError, match="never reaches the root"):
        Trees.of(torch.tensor([[1, 0, 9]]))
