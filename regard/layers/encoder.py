"""The encoder: N layers of self-attention and feed-forward over (B, S, D).

A layer over a long sequence keeps its input alone and is computed again in the backward pass, the
feed-forward in slices (Chen et al. 2016): a third more time, a fraction of the memory.
"""

from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from regard.attention.heads import MultiHead
from regard.attention.record import running_tape
from regard.layers.feed_forward import FeedForward
from regard.layers.residual import Residual

LONG = 4096  # places from which on memory counts more than a second forward pass
SLICE = 4096  # places that go through the feed-forward at a time then


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward, each in a residual."""

    stacked = True
    recompute = "auto"  # in the backward pass: always, never, or where the sequence is long

    def __init__(
        self,
        heads: MultiHead,
        d_model: int,
        d_ff: int,
        *,
        norm: str,
        dropout: float,
        activation: str = "relu",
    ) -> None:
        super().__init__()
        self.attention = heads
        self.feed_forward = FeedForward(d_model, d_ff, activation=activation)
        self.around_attention = Residual(d_model, norm=norm, dropout=dropout)
        self.around_feed_forward = Residual(d_model, norm=norm, dropout=dropout)

    def forward(self, x: Tensor, mask: Tensor | None = None, places: Any = None) -> Tensor:
        """x (B, S, D), mask (B, 1, 1, S), what the positions read -> (B, S, D)."""
        if not self._recomputes(x):
            return self._feed(self._attend(x, mask, places))
        # The heads that are off must be those of this moment.
        now = copy_context()

        def again(f: Callable[..., Tensor], *inputs: Any) -> Tensor:
            out: Tensor = checkpoint(partial(now.run, f), *inputs, use_reentrant=False)
            return out

        x = again(self._attend, x, mask, places)
        return torch.cat([again(self._feed, part) for part in torch.split(x, SLICE, 1)], 1)

    def _attend(self, x: Tensor, mask: Tensor | None, places: Any) -> Tensor:
        look = self.attention

        def around(y: Tensor) -> Tensor:
            out: Tensor = look(y, look.keys_values(y, 0, places), mask=mask, places=places)
            return out

        out: Tensor = self.around_attention(x, around)
        return out

    def _feed(self, x: Tensor) -> Tensor:
        out: Tensor = self.around_feed_forward(x, self.feed_forward)
        return out

    def _recomputes(self, x: Tensor) -> bool:
        """Whether the backward pass computes this layer again instead of holding what it needs."""
        if self.recompute == "never" or not torch.is_grad_enabled() or running_tape() is not None:
            return False
        return self.recompute == "always" or x.shape[1] >= LONG
