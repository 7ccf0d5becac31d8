"""Boxes as numbers: centre and size or corners, how much two share, and how far they are from each other.

    IoU = |A ∩ B| / |A ∪ B|        GIoU = IoU - |C \\ (A ∪ B)| / |C|,  C the smallest box around both

GIoU tells even of boxes that do not touch how far apart they are (Rezatofighi et al. 2019). Used by matching,
loss and measure of `regard.tasks.detection`.
"""

import torch
from torch import Tensor


def corners(boxes: Tensor) -> Tensor:
    """Centre and size (..., 4) -> left, top, right, bottom.

    >>> corners(torch.tensor([0.5, 0.5, 0.25, 0.5])).tolist()
    [0.375, 0.25, 0.625, 0.75]
    """
    centre, half = boxes[..., :2], boxes[..., 2:] / 2
    return torch.cat([centre - half, centre + half], -1)


def centred(boxes: Tensor) -> Tensor:
    """Left, top, right, bottom (..., 4) -> centre and size."""
    return torch.cat([(boxes[..., :2] + boxes[..., 2:]) / 2, boxes[..., 2:] - boxes[..., :2]], -1)


def area(boxes: Tensor) -> Tensor:
    """Of corners (..., 4): (...)."""
    sides = (boxes[..., 2:] - boxes[..., :2]).clamp(min=0)
    return sides[..., 0] * sides[..., 1]


def overlap(one: Tensor, other: Tensor) -> tuple[Tensor, Tensor]:
    """IoU and GIoU of corners (..., 4) that broadcast: (...) each."""
    shared = torch.cat(
        [torch.maximum(one[..., :2], other[..., :2]), torch.minimum(one[..., 2:], other[..., 2:])], -1
    )
    around = torch.cat(
        [torch.minimum(one[..., :2], other[..., :2]), torch.maximum(one[..., 2:], other[..., 2:])], -1
    )
    both = area(shared)
    union = area(one) + area(other) - both
    iou = both / union.clamp(min=1e-9)
    whole = area(around)
    return iou, iou - (whole - union) / whole.clamp(min=1e-9)


def logit(x: Tensor) -> Tensor:
    """What the sigmoid of is x; finite."""
    x = x.clamp(1e-4, 1 - 1e-4)
    return (x / (1 - x)).log()
