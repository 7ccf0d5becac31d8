"""Word windows: gated 1-D convolutions in a residual (Dauphin et al. 2017, Gehring et al. 2017).

    y = a ⊙ σ(b),   [a; b] = W * x      a window of k places, 2 D channels, halved by the gate (GLU)

In a source the window lies around each place; in a target it ends there, so the future is never read.
With N layers a place hears from N (k - 1) + 1 places. After this file: `regard.models.conv`.
"""

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.attention.cache import KeyValue
from regard.attention.heads import MultiHead
from regard.layers.residual import Residual


class GatedConvolution(nn.Module):
    """(B, T + k - 1, D) -> (B, T, D): one output a window."""

    matrices: ClassVar = {"conv.weight": 2}  # the halves of the gate

    def __init__(self, d_model: int, kernel: int) -> None:
        super().__init__()
        self.kernel = kernel
        self.conv = nn.Conv1d(d_model, 2 * d_model, kernel)

    def draw(self) -> None:
        """The gate keeps the variance of what goes in (Gehring et al. 2017, 3.5)."""
        fan_in = self.conv.in_channels * self.kernel
        nn.init.normal_(self.conv.weight, std=(4 / fan_in) ** 0.5)
        assert self.conv.bias is not None
        nn.init.zeros_(self.conv.bias)

    def forward(self, x: Tensor) -> Tensor:
        return F.glu(self.conv(x.transpose(1, 2)), 1).transpose(1, 2)


class ConvolutionEncoderLayer(nn.Module):
    """A window around each place."""

    def __init__(self, d_model: int, kernel: int, *, norm: str, dropout: float) -> None:
        super().__init__()
        self.window = GatedConvolution(d_model, kernel)
        self.around = Residual(d_model, norm=norm, dropout=dropout)

    def forward(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        """x (B, S, D), real where real (B, S) is True -> (B, S, D); padding is read as zeros."""
        k = self.window.kernel

        def read(y: Tensor) -> Tensor:
            y = y if real is None else y.masked_fill(~real[:, :, None], 0.0)
            out: Tensor = self.window(F.pad(y, (0, 0, (k - 1) // 2, k // 2)))
            return out

        out: Tensor = self.around(x, read)
        return out


class ConvolutionDecoderLayer(nn.Module):
    """A window that ends at each place, then attention to the source: for a whole target or one token."""

    def __init__(
        self, cross_heads: MultiHead, d_model: int, kernel: int, *, norm: str, dropout: float
    ) -> None:
        super().__init__()
        self.window = GatedConvolution(d_model, kernel)
        self.cross = cross_heads
        self.around = Residual(d_model, norm=norm, dropout=dropout)
        self.around_cross = Residual(d_model, norm=norm, dropout=dropout)

    def forward(
        self, x: Tensor, memory: KeyValue, *, memory_mask: Tensor | None = None, past: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """x (B, T, D) after `past` (B, k - 1, D), None: zeros -> ((B, T, D), the last k - 1 places)."""
        k = self.window.kernel
        after: list[Tensor] = []

        def read(y: Tensor) -> Tensor:
            wide = F.pad(y, (0, 0, k - 1, 0)) if past is None else torch.cat([past, y], 1)
            after.append(wide[:, wide.shape[1] - (k - 1) :])
            out: Tensor = self.window(wide)
            return out

        x = self.around(x, read)
        return self.around_cross(x, lambda y: self.cross(y, memory, mask=memory_mask)), after[0]
