"""Attention over a feature map, behind a gate that starts shut (Zhang et al. 2019, section 3).

    y = x + g a(x)      g one number, 0 at first; a: every place of the map looks at every 2 × 2 places

The map begins as its convolutions make it, and the heads are let in as far as they help. Keys and values are
those of the map pooled to half its side, as in the paper's program: a quarter of the work. Before this file:
`regard.attention.heads`; after it: `regard.models.sagan`.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.attention.heads import MultiHead


class Gated(nn.Module):
    """A map (B, C, H, W) that looks at itself; C is the width of the heads."""

    def __init__(self, heads: MultiHead) -> None:
        super().__init__()
        self.heads = heads
        self.gate = nn.Parameter(torch.zeros(1))

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, H, W) -> (B, C, H, W)."""
        places = x.flatten(2).transpose(1, 2)  # (B, T, C)
        pooled = F.max_pool2d(x, 2, ceil_mode=True).flatten(2).transpose(1, 2)  # (B, S, C)
        found = self.heads(places, self.heads.keys_values(pooled))  # (B, T, C)
        out: Tensor = x + self.gate * found.transpose(1, 2).reshape(x.shape)
        return out
