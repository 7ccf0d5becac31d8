"""A picture to vectors: cut into patches, or read by a few small convolutions, a vector a patch in the end.

    patches       x_i = W p_i + b over the P×P pixels of a patch (Dosovitskiy et al. 2021)
    convolution   3×3 kernels that halve the picture until a pixel is a patch (Xiao et al. 2021: early
                  convolutions; trained on little data they see edges at once)

(B, C, H, W) -> (B, R·C, D), row by row. After this file: `regard.models.vision`.
"""

from collections.abc import Iterator
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.errors import UsageError


class Convolution(nn.Conv2d):
    """torch's, drawn for what follows it, and moved as the matrix that it is."""

    matrices: ClassVar = {"weight": 1}  # (C_out, C_in·K·K)

    def draw(self) -> None:
        nn.init.kaiming_normal_(self.weight, nonlinearity="relu")
        if self.bias is not None:
            nn.init.zeros_(self.bias)


def convolution(width: int, to: int, *, stride: int = 1) -> nn.Sequential:
    """A 3×3 kernel, a norm over the picture, and max(0, ·)."""
    return nn.Sequential(
        Convolution(width, to, 3, stride=stride, padding=1, bias=False),
        nn.GroupNorm(1, to),
        nn.ReLU(inplace=True),
    )


class Block(nn.Module):
    """x + f(x), f two convolutions."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = nn.Sequential(convolution(width, width), convolution(width, width))

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, H, W) -> (B, C, H, W)."""
        out: Tensor = x + self.inner(x)
        return out


def halving(channels: int, width: int, halvings: int, blocks: int) -> nn.Sequential:
    """Convolutions that halve a picture so many times, twice as wide each time, `width` at the end."""
    steps: list[nn.Module] = []
    for left in reversed(range(max(1, halvings))):
        to = max(16, width >> left) if left else width
        steps.append(convolution(channels, to, stride=2 if halvings else 1))
        steps += [Block(to) for _ in range(blocks)]
        channels = to
    return nn.Sequential(*steps)


class Patches(nn.Module):
    """The patches of a picture as vectors of `width` numbers."""

    def __init__(self, channels: int, patch: int, width: int, *, stem: str, blocks: int = 1) -> None:
        super().__init__()
        self.patch = patch
        if stem == "patches":
            self.read: nn.Module = Convolution(channels, width, patch, stride=patch)
        else:
            halvings = patch.bit_length() - 1
            if 2**halvings != patch:
                raise UsageError(f"image.patch ({patch}) must be a power of 2 where image.stem=convolution")
            self.read = nn.Sequential(
                halving(channels, width, halvings, blocks), Convolution(width, width, 1)
            )

    def learned_before(self) -> Iterator[nn.Parameter]:
        """The weights that were trained for something else: none."""
        return iter(())

    def forward(self, pixels: Tensor) -> Tensor:
        """(B, C, H, W) -> (B, T, D)."""
        down, across = (-side % self.patch for side in pixels.shape[2:])
        if down or across:
            pixels = F.pad(pixels, (0, across, 0, down))
        found: Tensor = self.read(
            pixels.contiguous(memory_format=torch.channels_last)
        )  # (B, D, rows, columns)
        return found.flatten(2).transpose(1, 2)
