"""How well a query fits a key: the score functions, one config word each (`attention.score`).

    dot         q·k
    scaled-dot  q·k / √K    keeps the variance of scores at 1, so the softmax is not saturated
                            (Vaswani et al. 2017, 3.2.1)

A score is a module, because some kinds have parameters: (B, H, T, K), (B, H, S, K) -> (B, H, T, S).
What SDPA can compute itself says so by `scale`; the others go through the readable path.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn


class Score(nn.Module):
    """Base of all scores. `scale` is the factor on q·k where the score is no more than that."""

    scale: float | None = None

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        """Scores of every query with every key: (B, H, T, K), (B, H, S, K) -> (B, H, T, S)."""
        raise NotImplementedError


class Dot(Score):
    """q·k times a fixed factor."""

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        assert self.scale is not None
        return torch.matmul(q * self.scale, k.transpose(-2, -1))  # (B, H, T, S)


SCORES: dict[str, Callable[[int], Score]] = {
    "dot": lambda d_head: Dot(),
    "scaled-dot": lambda d_head: Dot(d_head**-0.5),
}


def build_score(kind: str, d_head: int) -> Score:
    """The score of that name for heads of width `d_head`."""
    return SCORES[kind](d_head)
