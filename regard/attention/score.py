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

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.errors import UsageError, error_line
from regard.kinds import SCORES


class Score(nn.Module):
    """Base of all scores; one that is a product of two vectors provides `factors` alone."""

    scale: float | None = None  # where the score is q·k times this number and nothing else

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

    native = "dot"

    def __init__(self, scale: float = 1.0) -> None:
        super().__init__()
        self.scale: float = scale

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
        self.before = d_head**-0.5

    def factors(self, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        return torch.matmul(q * self.before, self.weight), k  # (B, H, T, K)


def dot(n_heads: int, d_head: int) -> Score:
    """q·k."""
    return Dot()


def scaled_dot(n_heads: int, d_head: int) -> Score:
    """q·k / √K."""
    return Dot(d_head**-0.5)


def build_score(kind: str, n_heads: int, d_head: int) -> Score:
    """The score of that name, made for `n_heads` heads of width `d_head`."""
    made = SCORES[kind](n_heads, d_head)
    if SCORES.foreign(kind):
        _prove(kind, made, n_heads, d_head)
    score: Score = made
    return score


@torch.no_grad()
def _prove(kind: str, made: object, n_heads: int, d_head: int) -> None:
    """Refuse a score from outside that does not keep to what a score is."""
    if not isinstance(made, Score):
        raise UsageError(f"attention.score={kind} made a {type(made).__name__}, not a Score")
    q, k = torch.zeros(1, n_heads, 2, d_head), torch.zeros(1, n_heads, 3, d_head)
    try:
        found = tuple(made(q, k).shape)
    except Exception as error:
        raise UsageError(f"attention.score={kind} cannot be computed: {error_line(error)}") from error
    if found != (1, n_heads, 2, 3):
        raise UsageError(
            f"attention.score={kind} makes {found} of (B, H, T, K) and (B, H, S, K); "
            f"it should be (B, H, T, S), here {(1, n_heads, 2, 3)}"
        )
