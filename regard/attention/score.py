"""How well a query fits a key: the score functions, one config word each (`attention.score`).

    dot         q·k
    scaled-dot  q·k / √K      keeps the variance of scores at 1, so the softmax is not saturated
                              (Vaswani et al. 2017, 3.2.1)
    cosine      s q·k/|q||k|  s is learned, one a head
    general     q W k / √K    W is learned, one a head (Luong et al. 2015, 3.1)
    additive    v·tanh(W q + U k), see `additive.py`

A score is a module, because some kinds have parameters: (B, H, T, K), (B, H, S, K) -> (B, H, T, S).
Those that are a plain product of two vectors give them as `factors`, and SDPA computes them.
"""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
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


class Cosine(Score):
    """The angle alone, times a learned factor a head.

    A cosine lies in [-1, 1]: among 30 keys a bare softmax over it could give no key more than a fifth. The
    factor begins at √K, where the scores of random vectors have the variance 1 of scaled dot, and is
    learned as its logarithm, so it stays positive (Henry et al. 2020).
    """

    def __init__(self, n_heads: int, d_head: int) -> None:
        super().__init__()
        self.log_scale = nn.Parameter(torch.full((n_heads, 1, 1), math.log(d_head) / 2))

    def factors(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        return F.normalize(q, dim=-1) * self.log_scale.exp().to(q.dtype), F.normalize(k, dim=-1)


class General(Score):
    """q W k with a matrix a head, which begins as scaled dot."""

    def __init__(self, n_heads: int, d_head: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.eye(d_head).repeat(n_heads, 1, 1))
        self.scale = d_head**-0.5

    def factors(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        return torch.matmul(q * self.scale, self.weight), k  # (B, H, T, K)


def _additive(n_heads: int, d_head: int) -> Score:
    from regard.attention.additive import Additive  # it is a Score, so it imports this file

    return Additive(n_heads, d_head)


# Made for H heads of width K.
SCORES: dict[str, Callable[[int, int], Score]] = {
    "dot": lambda n_heads, d_head: Dot(),
    "scaled-dot": lambda n_heads, d_head: Dot(d_head**-0.5),
    "cosine": Cosine,
    "additive": _additive,
    "general": General,
}


def build_score(kind: str, n_heads: int, d_head: int) -> Score:
    """The score of that name for `n_heads` heads of width `d_head`."""
    return SCORES[kind](n_heads, d_head)
