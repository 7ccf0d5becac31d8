"""Scores against their formulas, element by element."""

import pytest
import torch

from regard.attention.score import build_score


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
