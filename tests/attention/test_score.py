"""Scores against their formulas, element by element."""

import itertools

import pytest
import torch

from regard.attention.attend import attend, attend_readable
from regard.attention.score import Score, build_score
from regard.kinds import SCORES


@pytest.mark.parametrize(("kind", "factor"), [("dot", 1.0), ("scaled-dot", 11**-0.5)])
def test_dot_scores(kind: str, factor: float) -> None:
    q, k = torch.randn(2, 3, 5, 11), torch.randn(2, 3, 7, 11)
    scores = build_score(kind, 3, 11)(q, k)
    expected = (q[:, :, :, None] * k[:, :, None]).sum(-1) * factor
    torch.testing.assert_close(scores, expected, atol=1e-5, rtol=1e-5)


def test_scaling_keeps_the_variance_of_scores_at_one() -> None:
    torch.manual_seed(1)
    q, k = torch.randn(1, 1, 400, 64), torch.randn(1, 1, 400, 64)
    assert build_score("scaled-dot", 1, 64)(q, k).var().item() == pytest.approx(1.0, rel=0.1)
    assert build_score("dot", 1, 64)(q, k).var().item() == pytest.approx(64.0, rel=0.1)


def each_pair(score: torch.nn.Module, q: torch.Tensor, k: torch.Tensor, formula: object) -> torch.Tensor:
    """`formula(head, query, key)` for every pair, one at a time."""
    (batch, heads, queries, _), keys = q.shape, k.shape[2]
    out = torch.empty(batch, heads, queries, keys)
    for b, h, i, j in itertools.product(*map(range, out.shape)):
        out[b, h, i, j] = formula(h, q[b, h, i], k[b, h, j])  # type: ignore[operator]
    return out


def randomised(kind: str) -> Score:
    """A score whose parameters are not those it begins with."""
    torch.manual_seed(5)
    score = build_score(kind, 3, 11)
    for weight in score.parameters():
        torch.nn.init.normal_(weight)
    return score


@torch.no_grad()
def test_cosine_is_the_angle_times_the_heads_factor() -> None:
    q, k, score = torch.randn(2, 3, 5, 11), torch.randn(2, 3, 7, 11), randomised("cosine")
    factor = score.log_scale.flatten().exp()
    expected = each_pair(score, q, k, lambda h, a, b: factor[h] * (a @ b) / (a.norm() * b.norm()))
    torch.testing.assert_close(score(q, k), expected, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_general_is_a_product_with_the_heads_matrix() -> None:
    q, k, score = torch.randn(2, 3, 5, 11), torch.randn(2, 3, 7, 11), randomised("general")
    expected = each_pair(score, q, k, lambda h, a, b: a @ score.weight[h] @ b / 11**0.5)
    torch.testing.assert_close(score(q, k), expected, atol=1e-5, rtol=1e-5)


@torch.no_grad()
def test_additive_is_a_small_network() -> None:
    q, k, score = torch.randn(2, 3, 5, 11), torch.randn(2, 3, 7, 11), randomised("additive")
    expected = each_pair(
        score, q, k, lambda h, a, b: score.value[h, 0] @ (score.query[h] @ a + score.key[h] @ b).tanh()
    )
    torch.testing.assert_close(score(q, k), expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("kind", ["cosine", "general", "additive"])
def test_fresh_scores_neither_saturate_the_softmax_nor_leave_it_flat(kind: str) -> None:
    torch.manual_seed(1)
    q, k = torch.randn(1, 3, 200, 64), torch.randn(1, 3, 200, 64)
    assert 0.2 < build_score(kind, 3, 64)(q, k).var().item() < 2.0


@pytest.mark.parametrize("kind", SCORES)
def test_the_fast_path_equals_the_readable_one(kind: str) -> None:
    q, k, v = torch.randn(2, 3, 5, 11), torch.randn(2, 3, 7, 11), torch.randn(2, 3, 7, 11)
    score = randomised(kind) if kind not in ("dot", "scaled-dot") else build_score(kind, 3, 11)
    mask = torch.rand(2, 1, 5, 7) < 0.7
    with torch.no_grad():
        fast = attend(q, k, v, mask=mask, score=score)
        slow, _ = attend_readable(q, k, v, mask=mask, score=score)
    torch.testing.assert_close(fast, slow, atol=1e-5, rtol=1e-5)
