"""The encoder: N layers of self-attention and feed-forward over (B, S, D)."""

from collections.abc import Callable

from torch import Tensor, nn

from regard.attention.heads import MultiHead
from regard.layers.feed_forward import FeedForward
from regard.layers.residual import Residual

HeadsMaker = Callable[[str], MultiHead]


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward, each in a residual."""

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

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """x (B, S, D), mask (B, 1, 1, S) -> (B, S, D)."""
        x = self.around_attention(x, lambda y: self.attention(y, self.attention.keys_values(y), mask=mask))
        out: Tensor = self.around_feed_forward(x, self.feed_forward)
        return out
