"""The position-wise network: FFN(x) = max(0, x W1 + b1) W2 + b2 (Vaswani et al. 2017, 3.3).

`model.activation` may name another function a in the place of max(0, ·), or one that opens a gate:
FFN(x) = (a(x W1) ⊙ x V) W2, with V below W1 in one matrix (Shazeer 2020: `swiglu`, `geglu`).
"""

from collections.abc import Callable
from functools import partial

import torch.nn.functional as F
from torch import Tensor, nn

from regard.attention.dropout import dropout
from regard.attention.linear import Linear

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "swish": F.silu,
    "gelu": F.gelu,
    "gelu-tanh": partial(F.gelu, approximate="tanh"),
    "relu2": lambda x: F.relu(x).square(),
}
GATES: dict[str, Callable[[Tensor], Tensor]] = {"swiglu": F.silu, "geglu": F.gelu}


class FeedForward(nn.Module):
    """(B, T, D) -> (B, T, D) through F hidden units; each place by itself."""

    shows = "units"

    def __init__(self, d_model: int, d_ff: int, *, dropout: float = 0.0, activation: str = "relu") -> None:
        super().__init__()
        self.word, self.gated = activation, activation in GATES
        self.matrices = {"inner.weight": 1 + self.gated}
        self.inner = Linear(d_model, d_ff * (1 + self.gated))
        self.outer = Linear(d_ff, d_model)
        self.dropout = dropout
        self.activation = (GATES if self.gated else ACTIVATIONS)[activation]

    def draw(self) -> None:
        """What opens the gate and what goes through it are two products, each drawn as one."""
        for part in self.inner.weight.chunk(2) if self.gated else ():
            nn.init.xavier_uniform_(part)

    def hidden(self, x: Tensor) -> Tensor:
        """What the hidden units say: (B, T, F)."""
        hidden: Tensor = self.inner(x)  # (B, T, F), gated: (B, T, 2 F)
        if not self.gated:
            return self.activation(hidden)
        opening, passing = hidden.chunk(2, -1)
        return self.activation(opening) * passing

    def forward(self, x: Tensor) -> Tensor:
        hidden = dropout(self.hidden(x), self.dropout, training=self.training)
        out: Tensor = self.outer(hidden)
        return out
