"""The places of a sentence become one vector: their mean, the first of them, or the largest of each number.

    mean   Σ_s real_s h_s / Σ_s real_s       first   h_0       max   max_s h_s over the real places

Reimers & Gurevych 2019, section 3. Padding is never seen. Or a learned query looks at them, and its heads say
which places count (`AttentionPool`; Zhai et al. 2022). After this file: the models, `regard.tasks.embed`.
"""

from torch import Tensor, nn

from regard.attention.heads import MultiHead
from regard.attention.linear import gaussian

POOLINGS = ("mean", "first", "max")


def pool(hidden: Tensor, real: Tensor, word: str) -> Tensor:
    """hidden (B, S, D), real (B, S) -> (B, D)."""
    if word == "first":
        return hidden[:, 0]
    seen = real[..., None]  # (B, S, 1)
    if word == "max":
        return hidden.masked_fill(~seen, float("-inf")).amax(1)
    assert word == "mean", word
    return (hidden * seen).sum(1) / seen.sum(1)


class AttentionPool(nn.Module):
    """One query that is learned looks at every place: (B, S, D) -> (B, D)."""

    def __init__(self, heads: MultiHead, d_model: int) -> None:
        super().__init__()
        self.attention = heads
        self.query = gaussian(1, 1, d_model)

    def forward(self, hidden: Tensor) -> Tensor:
        """(B, S, D) -> (B, D)."""
        asked = self.query.expand(len(hidden), -1, -1).to(hidden.dtype)
        found: Tensor = self.attention(asked, self.attention.keys_values(hidden))
        return found[:, 0]
