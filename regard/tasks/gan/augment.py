"""Changes to pictures that gradients go through: both adversaries see them, so nothing of them is drawn.

With little data a discriminator learns it by heart; shifted, cut and coloured pictures keep it from that, and
what is done to real ones is done to drawn ones too (DiffAugment: Zhao et al. 2020). Never a mirror: a letter
is not its mirror image. Used by `objective.py`.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

SHIFT, HOLE = 8, 2  # an eighth of the side at most; half of it


def augmented(pictures: Tensor, kind: str) -> Tensor:
    """Pictures (B, C, H, W) in -1 to 1 as they are shown; `kind` is that of the config."""
    if kind == "none":
        return pictures
    if kind == "all":
        pictures = coloured(pictures)
    return cut(shifted(pictures))


def coloured(x: Tensor) -> Tensor:
    """Brighter or darker, paler or deeper, with more contrast or less."""
    light, depth, contrast = torch.rand(3, len(x), 1, 1, 1, device=x.device)
    x = x + light - 0.5
    grey = x.mean(1, keepdim=True)
    x = (x - grey) * 2 * depth + grey
    mean = x.mean((1, 2, 3), keepdim=True)
    out: Tensor = (x - mean) * (contrast + 0.5) + mean
    return out


def shifted(x: Tensor) -> Tensor:
    """Moved by some pixels; what comes in goes on as the edge was."""
    count, _, height, width = x.shape
    reach = max(1, height // SHIFT)
    wide = F.pad(x, (reach, reach, reach, reach), mode="replicate")
    down, across = torch.randint(0, 2 * reach + 1, (2, count, 1), device=x.device)
    rows, columns = (torch.arange(size, device=x.device) for size in (height, width))
    rows, columns = rows + down, columns + across  # (B, H) and (B, W)
    each = torch.arange(count, device=x.device)[:, None, None]
    return wide.movedim(1, -1)[each, rows[:, :, None], columns[:, None, :]].movedim(-1, 1)


def cut(x: Tensor) -> Tensor:
    """With a square of grey somewhere, perhaps half outside."""
    count, _, height, width = x.shape
    half = max(1, height // HOLE) // 2
    middle = (
        torch.rand(2, count, 1, device=x.device)
        * torch.tensor([height, width], device=x.device)[:, None, None]
    )
    down, across = (
        (torch.arange(size, device=x.device) + 0.5 - at).abs() < half
        for size, at in zip((height, width), middle, strict=True)
    )
    return x.masked_fill((down[:, :, None] & across[:, None, :])[:, None], 0.0)
