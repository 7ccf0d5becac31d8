"""The decoder layer: masked self-attention, cross-attention to the encoder, feed-forward."""

from torch import Tensor, nn

from regard.attention.cache import KeyValue
from regard.attention.heads import MultiHead
from regard.layers.feed_forward import FeedForward
from regard.layers.residual import Residual


class DecoderLayer(nn.Module):
    """One layer; the same code reads a whole target (training) and one token (decoding)."""

    def __init__(
        self,
        self_heads: MultiHead,
        cross_heads: MultiHead,
        d_model: int,
        d_ff: int,
        *,
        norm: str,
        dropout: float,
        activation: str = "relu",
    ) -> None:
        super().__init__()
        self.attention = self_heads
        self.cross = cross_heads
        self.feed_forward = FeedForward(d_model, d_ff, activation=activation)
        self.around_attention = Residual(d_model, norm=norm, dropout=dropout)
        self.around_cross = Residual(d_model, norm=norm, dropout=dropout)
        self.around_feed_forward = Residual(d_model, norm=norm, dropout=dropout)

    def forward(
        self, x: Tensor, memory: KeyValue, *, memory_mask: Tensor | None = None, past: KeyValue | None = None
    ) -> tuple[Tensor, KeyValue]:
        """x (B, T, D) after `past` -> ((B, T, D), past with x's own keys and values)."""
        seen: list[KeyValue] = []

        def look_back(y: Tensor) -> Tensor:
            own = self.attention.keys_values(y, 0 if past is None else past.end)
            seen.append(own if past is None else past.append(own, self.attention.kernel.keep))
            out: Tensor = self.attention(y, seen[0], causal=True)
            return out

        x = self.around_attention(x, look_back)
        x = self.around_cross(x, lambda y: self.cross(y, memory, mask=memory_mask))
        return self.around_feed_forward(x, self.feed_forward), seen[0]
