"""The position-wise network: FFN(x) = max(0, x W1 + b1) W2 + b2 (Vaswani et al. 2017, 3.3)."""

import torch.nn.functional as F
from torch import Tensor, nn

from regard.attention.dropout import dropout


class FeedForward(nn.Module):
    """(B, T, D) -> (B, T, D) through F hidden units; each place by itself."""

    def __init__(self, d_model: int, d_ff: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.inner = nn.Linear(d_model, d_ff)
        self.outer = nn.Linear(d_ff, d_model)
        self.dropout = dropout

    def forward(self, x: Tensor) -> Tensor:
        hidden = F.relu(self.inner(x), inplace=True)  # (B, T, F)
        hidden = dropout(hidden, self.dropout, training=self.training)
        out: Tensor = self.outer(hidden)
        return out
