"""What stands around every sub-layer: dropout, the residual, and layer norm after or before.

post   norm(x + dropout(f(x)))      as in the paper
pre    x + dropout(f(norm(x)))      trains without a long warm-up

norm(x) = gain (x - mean) / deviation + bias, over the D numbers of each place; both may be left out.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from regard.attention.dropout import dropout


class Residual(nn.Module):
    """Wraps one sub-layer f: (B, T, D) -> (B, T, D)."""

    def __init__(self, d_model: int, *, norm: str, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(d_model)
        self.first = norm == "pre"
        self.dropout = dropout

    def forward(self, x: Tensor, f: Callable[[Tensor], Tensor]) -> Tensor:
        y = f(self.norm(x) if self.first else x)
        out = dropout(y, self.dropout, training=self.training, residual=x)
        return out if self.first else self.norm(out)


def gain_and_bias(norm: nn.LayerNorm) -> tuple[Tensor, Tensor]:
    """What a norm multiplies with and adds, (D,) each: one and zero where it has learned none."""
    gain: Tensor | None = norm.weight
    bias: Tensor | None = norm.bias
    width = norm.normalized_shape
    return torch.ones(width) if gain is None else gain, torch.zeros(width) if bias is None else bias
