"""Basic self-attention against a loop, and its two laws."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.attention.basic import basic_self_attention, basic_weights
from regard.errors import UsageError

KINDS = ["dot", "cosine"]


@pytest.mark.parametrize("similarity", KINDS)
def test_it_is_the_formula(similarity: str) -> None:
    x = torch.randn(5, 7)
    for i in range(5):
        scores = []
        for j in range(5):
            like = sum(float(a * b) for a, b in zip(x[i], x[j], strict=True))
            scores.append(like if similarity == "dot" else like / float(x[i].norm() * x[j].norm()))
        total = sum(map(math.exp, scores))
        expected = sum(math.exp(score) / total * x[j] for j, score in enumerate(scores))
        torch.testing.assert_close(basic_self_attention(x, similarity)[i], expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("similarity", KINDS)
@given(st.integers(1, 9), st.integers(1, 5), st.integers(0, 2**31 - 1))
def test_rows_sum_to_one_and_order_means_nothing(similarity: str, length: int, width: int, seed: int) -> None:
    torch.manual_seed(seed)
    x, order = torch.randn(2, length, width), torch.randperm(length)
    torch.testing.assert_close(basic_weights(x, similarity).sum(-1), torch.ones(2, length))
    torch.testing.assert_close(
        basic_self_attention(x[:, order], similarity), basic_self_attention(x, similarity)[:, order]
    )


def test_another_similarity_is_refused() -> None:
    with pytest.raises(UsageError, match=r"similarity \(euclid\) must be dot or cosine"):
        basic_self_attention(torch.zeros(1, 1), "euclid")
