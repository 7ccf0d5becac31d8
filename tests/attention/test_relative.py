"""Shaw's relative positions against loops over every pair, and what is never built."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sizes import Largest

from regard.attention import MultiHead
from regard.attention.relative import Relative, skew, unskew

B, H, K = 2, 3, 11


def distance(i: int, j: int, clip: int) -> int:
    return max(-clip, min(clip, j - i)) + clip


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 6), st.integers(0, 9), st.integers(0, 5), st.integers(1, 12))
@torch.no_grad()
def test_bias_and_values_are_those_of_the_paper(queries: int, past: int, future: int, clip: int) -> None:
    torch.manual_seed(queries)
    positions, keys = Relative(K, clip), queries + past + future
    q, weights = torch.randn(B, H, queries, K), torch.rand(B, H, queries, keys)
    bias, values = torch.zeros(B, H, queries, keys), torch.zeros(B, H, queries, K)
    for i in range(queries):
        for j in range(keys):
            d = distance(past + i, j, clip)
            bias[:, :, i, j] = q[:, :, i] @ positions.key_embedding[d] / K**0.5
            values[:, :, i] += weights[:, :, i, j, None] * positions.value_embedding[d]
    torch.testing.assert_close(positions.bias(q, keys, past), bias, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(positions.gather(weights, past), values, atol=1e-5, rtol=1e-5)


def test_gradients_are_those_of_the_loops() -> None:
    torch.manual_seed(0)
    positions = Relative(K, 3).double()
    q = torch.randn(B, H, 5, K, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: positions.bias(x, 8, 2), q)
    weights = torch.rand(B, H, 5, 8, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: positions.gather(x, 2), weights)


def test_unskew_undoes_skew_and_leaves_zeros() -> None:
    weights = torch.rand(2, 4, 6)
    assert torch.equal(skew(unskew(weights), 6), weights)
    assert unskew(weights).sum() == weights.sum()


def test_nothing_as_large_as_a_vector_for_each_pair_is_built() -> None:
    length, width = 61, 16
    heads = MultiHead(2 * width, 2, positions=Relative(width, 8))
    x = torch.randn(1, length, 2 * width, requires_grad=True)
    with Largest() as watch:
        heads(x, heads.keys_values(x), causal=True).sum().backward()
    assert watch.numbers <= 2 * 2 * length * (length + length)  # of all heads: twice the scores


@pytest.mark.parametrize("length", [4, 40])
def test_beyond_the_clip_all_distances_are_one(length: int) -> None:
    positions = Relative(K, 2)
    bias = positions.bias(torch.ones(1, 1, length, K), length)[0, 0]
    assert bias[0, 3:].unique().numel() == 1
    assert torch.equal(bias[-1, :-3], bias[-1, :1].expand(length - 3))
