"""A decoder layer that remembers by a recurrence without a product in it: SSRU (Kim et al. 2019, 3.1).

    f_t = σ(W_f x_t + b_f)
    c_t = f_t ⊙ c_{t-1} + (1 - f_t) ⊙ W x_t
    h_t = max(0, c_t)

It stands where self-attention would: what is remembered is one vector, however long the text. Both products
are of the input alone, so that a whole target has them at once and only the sum above goes from place to
place. After this file: `regard.models.ssru`.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.attention.cache import KeyValue
from regard.attention.heads import MultiHead
from regard.attention.linear import Linear
from regard.layers.feed_forward import FeedForward
from regard.layers.residual import Residual


class SSRU(nn.Module):
    """The unit: (B, T, D) -> (B, T, D), each number of a place by itself."""

    native = "simple recurrence"

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.value = Linear(d_model, d_model, bias=False)
        self.forget = Linear(d_model, d_model)

    def forward(self, x: Tensor, past: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """x (B, T, D) after the memory `past` (B, D), None: zeros -> ((B, T, D), the memory after x)."""
        values, kept = self.value(x), self.forget(x).sigmoid()  # (B, T, D) each
        memory = torch.zeros_like(values[:, 0]) if past is None else past.to(values.dtype)
        memories = []
        for value, keep in zip(values.unbind(1), kept.unbind(1), strict=True):
            memory = torch.lerp(value, memory, keep)  # (B, D)
            memories.append(memory)
        return F.relu(torch.stack(memories, 1)), memory


class SSRULayer(nn.Module):
    """The unit, attention to the source, feed-forward: for a whole target or one token."""

    def __init__(
        self,
        cross_heads: MultiHead,
        d_model: int,
        d_ff: int,
        *,
        norm: str,
        dropout: float,
        activation: str = "relu",
    ) -> None:
        super().__init__()
        self.recurrence = SSRU(d_model)
        self.cross = cross_heads
        self.feed_forward = FeedForward(d_model, d_ff, activation=activation)
        self.around_recurrence = Residual(d_model, norm=norm, dropout=dropout)
        self.around_cross = Residual(d_model, norm=norm, dropout=dropout)
        self.around_feed_forward = Residual(d_model, norm=norm, dropout=dropout)

    def forward(
        self, x: Tensor, memory: KeyValue, *, memory_mask: Tensor | None = None, past: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """x (B, T, D) after `past` (B, D), None: nothing -> ((B, T, D), what is remembered of all)."""
        after: list[Tensor] = []

        def remember(y: Tensor) -> Tensor:
            out, now = self.recurrence(y, past)
            after.append(now)
            kept: Tensor = out
            return kept

        x = self.around_recurrence(x, remember)
        x = self.around_cross(x, lambda y: self.cross(y, memory, mask=memory_mask))
        return self.around_feed_forward(x, self.feed_forward), after[0]
