"""How well a query fits a key: the score functions, one config word each (`attention.score`).

    dot         q·k
    scaled-dot  q·k / √K    keeps the variance of scores at 1, so the softmax is not saturated
                            (Vaswani et al. 2017, 3.2.1)

A score is a module, because some kinds have parameters: (B, H, T, K), (B, H, S, K) -> (B, H, T, S).
Those that are a plain product of two vectors give them as `factors`, and SDPA computes them.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn


class Score(nn.Module):
    """Base of all scores; one that is a product of two vectors provides `factors` alone."""

    def factors(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor] | None:
        """(q', k') with score = q'·k', in the shapes of q and k; None where the score is no product."""
        return None

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        """Scores of every query with every key: (B, H, T, K), (B, H, S, K) -> (B, H, T, S)."""
        factors = self.factors(q, k)
        assert factors is not None, "a score that is no product says itself how it is computed"
        return torch.matmul(factors[0], factors[1].transpose(-2, -1))  # (B, H, T, S)


class Dot(Score):
    """q·k times a fixed factor."""

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        self.scale = scale

    def factors(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        return q * self.scale, k


# Made for H heads of width K.
SCORES: dict[str, Callable[[int, int], Score]] = {
    "dot": lambda n_heads, d_head: Dot(),
    "scaled-dot": lambda n_heads, d_head: Dot(d_head**-0.5),
}


def build_score(kind: str, n_heads: int, d_head: int) -> Score:
    """The score of that name for `n_heads` heads of width `d_head`."""
    return SCORES[kind](n_heads, d_head)
