"""Frames to fewer, wider places: convolutions that halve the time, before the encoder.

    frames   1-D over time, mels in, D out: width 3, GELU; the last ones stride 2 (Whisper has two)
    bands    2-D over time and bands, C channels, each of stride 2 both ways, then a product to D

A place hears `reach` frames ahead. Padding is read as zeros, so a row's neighbours change nothing. Before
this file: `regard.audio.frames`; after it: the encoder of `regard.models.speech`.
"""

from typing import Any, ClassVar

import torch.nn.functional as F
from torch import Tensor, nn

from regard.attention.linear import Linear

WIDTH = 3  # of every convolution


class Subsampling(nn.Module):
    """(B, T, mels) -> (B, T / stride, D)."""

    matrices: ClassVar = {"convolutions": 0}

    def __init__(self, kind: str, mels: int, d_model: int, *, stride: int, channels: int = 32) -> None:
        super().__init__()
        self.kind = kind
        halvings = stride.bit_length() - 1
        self.strides = (1, 2) if kind == "frames" and halvings == 1 else (2,) * halvings
        widths = [mels if kind == "frames" else 1]
        widths += [d_model if kind == "frames" else channels] * len(self.strides)
        conv = nn.Conv1d if kind == "frames" else nn.Conv2d
        self.convolutions = nn.ModuleList(
            conv(before, after, WIDTH, step, padding=1)
            for before, after, step in zip(widths, widths[1:], self.strides, strict=False)
        )
        left = mels
        for _ in self.strides:
            left = (left + 1) // 2
        self.out = Linear(channels * left, d_model) if kind == "bands" else nn.Identity()

    @property
    def reach(self) -> int:
        """Frames after its own that a place hears of."""
        ahead, step = 0, 1
        for stride in self.strides:
            ahead, step = ahead + step, step * stride
        return ahead

    def lengths(self, frames: Tensor) -> Tensor:
        """Places of so many frames (B,)."""
        for stride in self.strides:
            frames = (frames + stride - 1) // stride
        return frames

    def draw(self) -> None:
        """He's weights: a GELU halves what goes through."""
        conv: Any
        for conv in self.convolutions:
            nn.init.kaiming_normal_(conv.weight, nonlinearity="relu")
            nn.init.zeros_(conv.bias)

    def forward(self, frames: Tensor, real: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """Frames (B, T, mels), real where (B, T) says so -> (B, S, D), and where that is real (B, S)."""
        x = frames if real is None else frames.masked_fill(~real[:, :, None], 0.0)
        x = x.transpose(1, 2) if self.kind == "frames" else x[:, None]  # (B, mels, T) or (B, 1, T, mels)
        for conv, stride in zip(self.convolutions, self.strides, strict=True):
            x = F.gelu(conv(x))
            if real is not None:
                real = real[:, ::stride]
                hidden = ~(real[:, None] if self.kind == "frames" else real[:, None, :, None])
                x = x.masked_fill(hidden, 0.0)
        if self.kind == "frames":
            return x.transpose(1, 2), real
        out: Tensor = self.out(x.transpose(1, 2).flatten(2))  # (B, S, C · bands)
        return out, real
