"""A ResNet as what reads pixels (He et al. 2016), for weights that were trained with one (DETR's).

    basic        x + two 3×3 convolutions
    bottleneck   x + narrower by 1×1, 3×3, wider by 1×1; the 3×3 halves the map where a stage begins

The norms of a trained network are numbers, so they are folded into the convolutions, as in `efficientnet.py`.
A text says which one it is: `bottleneck 64 256x3 512x4 1024x6 2048x3` is ResNet-50.
"""

import re
from collections.abc import Iterator
from itertools import chain
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.errors import UsageError, shown
from regard.layers.patches import Convolution

NARROWER = 4  # inside a bottleneck
KINDS = ("basic", "bottleneck")
_STAGES = re.compile(r"\d{1,5}x\d{1,3}")


class Shape(NamedTuple):
    """The kind of its blocks, the channels of the stem, and width and number of blocks of each stage."""

    kind: str
    stem: int
    stages: tuple[tuple[int, int], ...]

    @property
    def stride(self) -> int:
        """Pixels of a patch's side."""
        return 2 << len(self.stages)


def shape_of(text: str) -> Shape:
    """The ResNet that a text says.

    >>> shape_of("basic 64 64x2 128x2").stages
    ((64, 2), (128, 2))
    """
    kind, stem, *stages = [*text.split(), "", ""]
    stages = [stage for stage in stages if stage]
    if kind not in KINDS or not stem.isdecimal() or not stages or not all(map(_STAGES.fullmatch, stages)):
        raise UsageError(
            f"detection.resnet ({shown(text)}) must be like bottleneck 64 256x3 512x4 1024x6 2048x3"
        )
    pairs = [stage.split("x") for stage in stages]
    return Shape(kind, int(stem), tuple((int(width), int(count)) for width, count in pairs))


class ResidualBlock(nn.Module):
    """max(0, x + f(x)); x goes through a 1×1 convolution where the shape changes."""

    def __init__(self, kind: str, width: int, to: int, stride: int) -> None:
        super().__init__()
        if kind == "basic":
            steps = [(width, to, 3, stride), (to, to, 3, 1)]
        else:
            inner = to // NARROWER
            steps = [(width, inner, 1, 1), (inner, inner, 3, stride), (inner, to, 1, 1)]
        self.steps = nn.ModuleList(
            Convolution(low, high, kernel, stride=step, padding=kernel // 2)
            for low, high, kernel, step in steps
        )
        changes = stride != 1 or width != to
        self.shortcut = Convolution(width, to, 1, stride=stride) if changes else None

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, H, W) -> (B, C', H / stride, W / stride)."""
        y = x
        for number, step in enumerate(self.steps):
            y = step(F.relu(y) if number else y)
        return F.relu(y + (x if self.shortcut is None else self.shortcut(x)))


class ResidualPatches(nn.Module):
    """A picture to vectors, a patch of `stride` pixels each: (B, C, H, W) -> (B, T, D)."""

    def __init__(self, channels: int, stride: int, width: int, text: str) -> None:
        super().__init__()
        shape = shape_of(text)
        if shape.stride != stride:
            raise UsageError(
                f"detection.resnet has {len(shape.stages)} stages, whose patches have {shape.stride} pixels; "
                f"detection.stride is {stride}"
            )
        self.stem = Convolution(channels, shape.stem, 7, stride=2, padding=3)
        blocks: list[nn.Module] = []
        at = shape.stem
        for stage, (to, count) in enumerate(shape.stages):
            for number in range(count):
                blocks.append(ResidualBlock(shape.kind, at, to, 2 if stage and not number else 1))
                at = to
        self.blocks = nn.Sequential(*blocks)
        self.out = Convolution(at, width, 1)

    def learned_before(self) -> Iterator[nn.Parameter]:
        """The weights that were trained for something else: all but the last map."""
        return chain(self.stem.parameters(), self.blocks.parameters())

    def forward(self, pixels: Tensor) -> Tensor:
        x = F.relu(self.stem(pixels.contiguous(memory_format=torch.channels_last)))
        x = F.max_pool2d(x, 3, stride=2, padding=1)
        found: Tensor = self.out(self.blocks(x))  # (B, D, rows, columns)
        return found.flatten(2).transpose(1, 2)
