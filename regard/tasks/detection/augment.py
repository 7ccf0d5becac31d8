"""Pictures with boxes varied while a detector learns: moved, scaled and mirrored together, lit differently.

Drawn from torch's own generator, whose state a checkpoint holds. A box of which less than a third is still in
the picture is let go.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.layers.boxes import area, centred, corners

SHIFT, SCALE, LIGHT = 0.15, 0.25, 0.2  # either way
KEPT = 0.3  # of a box that must be left


def varied(
    pixels: Tensor, boxes: Sequence[Tensor], strength: float, flips: tuple[bool, bool]
) -> tuple[Tensor, list[Tensor], list[Tensor]]:
    """Pictures (B, C, H, W), normalised, and boxes (N, 4) of each: both varied, and which (N,) are left."""
    count = len(pixels)
    random = torch.rand(6, count) * 2 - 1
    scale = 1 + random[0] * SCALE * strength
    shift = random[1:3] * SHIFT * strength  # of the side, (2, B)
    sign = torch.ones(2, count)
    for axis, allowed in enumerate(flips):
        if allowed:
            sign[axis] = torch.where(random[3 + axis] < 0, -1.0, 1.0)
    # A point x of the new picture, from -1 to 1, comes from a x + b of the old one.
    a, b = (sign * scale).to(pixels), (2 * shift).to(pixels)
    zero = torch.zeros(count).to(pixels)
    rows = torch.stack([a[0], zero, b[0], zero, a[1], b[1]], 1).view(count, 2, 3)
    grid = F.affine_grid(rows, list(pixels.shape), align_corners=False)
    moved = F.grid_sample(pixels, grid, padding_mode="border", align_corners=False)
    light = (1 + random[5] * LIGHT * strength).to(pixels)
    held = [_moved(each, a[:, row], b[:, row]) for row, each in enumerate(boxes)]
    return moved * light[:, None, None, None], [box for box, _ in held], [left for _, left in held]


def _moved(boxes: Tensor, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Boxes (N, 4), centre and size, where a x + b = old, cut at the edge; and which are left (N,)."""
    old = corners(boxes).view(-1, 2, 2) * 2 - 1  # from -1 to 1
    new = ((old - b) / a + 1) / 2
    whole = torch.cat([new.amin(1), new.amax(1)], -1)  # (N, 4) corners
    cut = whole.clamp(0, 1)
    left = area(cut) > KEPT * area(whole)
    return centred(cut)[left], left
