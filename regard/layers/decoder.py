"""The decoder layer: self-attention that looks back, cross-attention if there is a memory, feed-forward."""

from typing import Any

from torch import Tensor, nn

from regard.attention.cache import KeyValue
from regard.attention.heads import MultiHead
from regard.layers.feed_forward import FeedForward
from regard.layers.residual import Residual


class DecoderLayer(nn.Module):
    """One layer; the same code reads a whole target (training) and one token (decoding).

    Without `cross_heads` it is the layer of a decoder that stands alone. It looks back only where the site of
    its own heads says so.
    """

    stacked = True

    def __init__(
        self,
        self_heads: MultiHead,
        cross_heads: MultiHead | None,
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
        self.around_cross = None if cross_heads is None else Residual(d_model, norm=norm, dropout=dropout)
        self.around_feed_forward = Residual(d_model, norm=norm, dropout=dropout)

    def forward(
        self,
        x: Tensor,
        memory: KeyValue | None = None,
        *,
        memory_mask: Tensor | None = None,
        past: KeyValue | None = None,
        mask: Tensor | None = None,
        places: Any = None,
        causal: bool = True,
    ) -> tuple[Tensor, KeyValue]:
        """x (B, T, D) after `past` -> ((B, T, D), past with x's own keys and values).

        `mask` (B, 1, 1, S) hides places of x and of what is past, beside the future; `memory_mask` those of
        the memory. `places` is what the positions inside both attentions know of x. Without `causal`, what is
        later is seen as well.
        """
        seen: list[KeyValue] = []

        def look_back(y: Tensor) -> Tensor:
            own = self.attention.keys_values(y, 0 if past is None else past.end, places)
            seen.append(own if past is None else past.append(own, self.attention.kernel.keep))
            held = None if mask is None else mask[..., -seen[0].length :]
            looks_back = causal and self.attention.site.causal
            out: Tensor = self.attention(y, seen[0], mask=held, causal=looks_back, places=places)
            return out

        x = self.around_attention(x, look_back)
        if self.cross is not None and self.around_cross is not None:
            cross = self.cross
            x = self.around_cross(x, lambda y: cross(y, memory, mask=memory_mask, places=places))
        return self.around_feed_forward(x, self.feed_forward), seen[0]
