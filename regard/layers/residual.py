"""What stands around every sub-layer: dropout, the residual, and a norm after or before.

post   norm(x + dropout(f(x)))      as in the paper
pre    x + dropout(f(norm(x)))      trains without a long warm-up

norm(x) = gain (x - mean) / deviation + bias, over the D numbers of each place; both may be left out. With
`-rms` behind it (`model.norm=pre-rms`), gain x / √mean(x²): nothing is moved (Zhang & Sennrich 2019).
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from regard.attention.dropout import dropout
from regard.fused.norm import fits, fork


class Norm(nn.LayerNorm):
    """torch's, which may go without what it would learn."""

    native = "moved"

    def fork(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(the norm of x, x), in one pass where that can be done."""
        return fork(x, self) if torch.is_grad_enabled() and fits(x, self) else (self(x), x)

    def keep(self, *, norm_weights: str, norm_eps: float, bias: bool) -> None:
        """Learn a gain and a bias (`both`), a gain alone (`gain`) or nothing (`none`)."""
        self.eps = norm_eps
        if norm_weights != "both":
            self.register_parameter("bias", None)
        if norm_weights == "none":
            self.register_parameter("weight", None)


class RootMeanSquare(nn.RMSNorm):
    """torch's, with the epsilon of the other one; it has no bias."""

    native = "scaled"

    def __init__(self, width: int) -> None:
        super().__init__(width, eps=1e-5)

    def fork(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """(the norm of x, x)."""
        return self(x), x

    def keep(self, *, norm_weights: str, norm_eps: float, bias: bool) -> None:
        """Learn a gain, or nothing (`none`)."""
        self.eps = norm_eps
        if norm_weights == "none":
            self.register_parameter("weight", None)


class NormKind(NamedTuple):
    """What a word of `model.norm` means."""

    first: bool  # it stands before its sub-layer
    build: Callable[[int], Norm | RootMeanSquare]


NORMS = {
    "pre": NormKind(True, Norm),
    "post": NormKind(False, Norm),
    "pre-rms": NormKind(True, RootMeanSquare),
    "post-rms": NormKind(False, RootMeanSquare),
}


class Residual(nn.Module):
    """Wraps one sub-layer f: (B, T, D) -> (B, T, D)."""

    shows = "way round"

    def __init__(self, d_model: int, *, norm: str, dropout: float) -> None:
        super().__init__()
        self.norm = NORMS[norm].build(d_model)
        self.first = NORMS[norm].first
        self.dropout = dropout

    def forward(self, x: Tensor, f: Callable[[Tensor], Tensor]) -> Tensor:
        normed, x = self.norm.fork(x) if self.first else (x, x)
        out = dropout(f(normed), self.dropout, training=self.training, residual=x)
        return out if self.first else self.norm(out)


def gain_and_bias(norm: nn.LayerNorm | nn.RMSNorm) -> tuple[Tensor, Tensor]:
    """What a norm multiplies with and adds, (D,) each: one and zero where it has learned none."""
    gain: Tensor | None = norm.weight
    bias: Tensor | None = getattr(norm, "bias", None)
    width = norm.normalized_shape
    return torch.ones(width) if gain is None else gain, torch.zeros(width) if bias is None else bias
