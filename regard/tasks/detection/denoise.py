"""Hints: true boxes that were spoiled, as queries beside the others, to be put right again (Li et al. 2022).

They need no matching, so they teach from the first step what a query has to do with its box. In groups: of
each group every box once. A mask keeps groups apart, and the real queries from all of them.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from regard.models.detector import Found, Hints
from regard.tasks.detection.matching import box_loss, class_loss

MOVED = 0.4  # of half of a side, at most, that a centre is moved; sides are scaled by as much
RELABELLED = 0.2  # of the boxes that get another class


class Spoiled(NamedTuple):
    """Hints, and what they are to become: classes (B, N), -1 where there is nothing, and boxes (B, N, 4)."""

    hints: Hints
    classes: Tensor
    boxes: Tensor
    groups: int


def spoil(
    wanted: Sequence[Tensor], around: Sequence[Tensor], *, groups: int, classes: int, queries: int
) -> Spoiled | None:
    """Spoiled copies of classes (N,) and boxes (N, 4) a picture; None where there is no box at all."""
    most = max((len(names) for names in wanted), default=0)
    if not most or not groups:
        return None
    rows, device = len(wanted), around[0].device
    true = torch.full((rows, most, 4), 0.5, device=device)
    names = torch.full((rows, most), -1, device=device)
    for row, (each, box) in enumerate(zip(wanted, around, strict=True)):
        true[row, : len(each)], names[row, : len(each)] = box, each
    true, names = true.repeat(1, groups, 1), names.repeat(1, groups)  # (B, G·n, ...)
    random = (torch.rand(2, *true.shape[:2], 2) * 2 - 1).to(device) * MOVED
    centre = true[..., :2] + random[0] * true[..., 2:] / 2
    boxes = torch.cat([centre, true[..., 2:] * (1 + random[1])], -1).clamp(1e-3, 1 - 1e-3)
    other = torch.randint(classes, names.shape).to(device)
    changed = torch.rand(names.shape).to(device) < RELABELLED
    given = torch.where(changed | (names < 0), other, names)
    return Spoiled(Hints(boxes, given, _apart(groups, most, queries, device)), names, true, groups)


def _apart(groups: int, most: int, queries: int, device: torch.device) -> Tensor:
    """Who may look at whom: a group at itself and at the queries, the queries at themselves."""
    group = torch.arange(groups * most, device=device) // most
    group = torch.cat([group, torch.full((queries,), groups, device=device)])
    same = group[:, None] == group[None]
    return (same | (group[None] == groups))[None, None]


def hint_loss(found: Found, task: Spoiled) -> Tensor:
    """What the hints have become against what they should; a sum over true boxes, the mean of groups."""
    count, real = task.classes.shape[1], task.classes >= 0
    total = found.boxes[0].new_zeros(())
    for classes, boxes in zip(found.classes, found.boxes, strict=True):
        held = int(real.sum())
        total = total + class_loss(classes[:, :count], task.classes, held)
        total = total + box_loss(boxes[:, :count][real], task.boxes[real])
    return total / (len(found.boxes) * task.groups)


def without_hints(found: Found, task: Spoiled | None) -> Found:
    """What the queries themselves have found."""
    if task is None:
        return found
    count = task.classes.shape[1]
    return Found([each[:, count:] for each in found.classes], [each[:, count:] for each in found.boxes])
