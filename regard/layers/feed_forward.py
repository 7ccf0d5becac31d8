"""The position-wise network: FFN(x) = max(0, x W1 + b1) W2 + b2 (Vaswani et al. 2017, 3.3).

Imported models may have another function in the place of max(0, ·): `model.activation`.
"""

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

from regard.attention.dropout import dropout

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": lambda x: F.relu(x, inplace=True),
    "swish": lambda x: F.silu(x, inplace=True),
    "gelu": F.gelu,
}


class FeedForward(nn.Module):
    """(B, T, D) -> (B, T, D) through F hidden units; each place by itself."""

    def __init__(self, d_model: int, d_ff: int, *, dropout: float = 0.0, activation: str = "relu") -> None:
        super().__init__()
        self.inner = nn.Linear(d_model, d_ff)
        self.outer = nn.Linear(d_ff, d_model)
        self.dropout = dropout
        self.activation = ACTIVATIONS[activation]

    def forward(self, x: Tensor) -> Tensor:
        hidden = self.activation(self.inner(x))  # (B, T, F)
        hidden = dropout(hidden, self.dropout, training=self.training)
        out: Tensor = self.outer(hidden)
        return out
