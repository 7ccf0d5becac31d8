"""What a set of found objects costs: each true box is given to one query, the rest must find nothing.

    cost(i, j) = -p_i(class j) + 5 |b_i - b_j|₁ - 2 GIoU(b_i, b_j)        the cheapest one-to-one matching
    loss = cross-entropy (nothing: a tenth) + 5 L1 + 2 (1 - GIoU), after every layer of the decoder

Carion et al. 2020, section 3.1. Nothing suppresses doubles afterwards: two queries on one box cost.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.layers.boxes import corners, overlap
from regard.models.detector import Found

NEAR, SHARED = 5.0, 2.0  # weights of L1 and GIoU
NOTHING = 0.1  # weight of queries that are to find nothing


def costs(classes: Tensor, boxes: Tensor, wanted: Tensor, around: Tensor) -> Tensor:
    """Queries (Q, L + 1), (Q, 4) against true classes (N,) and boxes (N, 4): (Q, N)."""
    likely = classes.softmax(-1)[:, wanted]  # (Q, N)
    far = torch.cdist(boxes, around, p=1)
    _, shared = overlap(corners(boxes)[:, None], corners(around)[None])
    return NEAR * far - likely - SHARED * shared


@torch.no_grad()
def match(classes: Tensor, boxes: Tensor, wanted: Tensor, around: Tensor) -> tuple[Tensor, Tensor]:
    """The cheapest one-to-one matching: queries (n,) and the true boxes (n,) that they get."""
    from scipy.optimize import linear_sum_assignment

    table = costs(classes.float(), boxes.float(), wanted, around).cpu().double().nan_to_num(1e6).numpy()
    queries, objects = linear_sum_assignment(table)
    return torch.as_tensor(queries), torch.as_tensor(objects)


def set_loss(found: Found, wanted: Sequence[Tensor], around: Sequence[Tensor]) -> Tensor:
    """The loss of what was found against classes (N,) and boxes (N, 4) a picture; a sum over true boxes."""
    total = found.boxes[0].new_zeros(())
    for classes, boxes in zip(found.classes, found.boxes, strict=True):
        pairs = [match(*each) for each in zip(classes, boxes, wanted, around, strict=True)]
        rows = torch.cat([torch.full_like(queries, row) for row, (queries, _) in enumerate(pairs)])
        queries = torch.cat([queries for queries, _ in pairs])
        given = torch.cat([names[objects] for names, (_, objects) in zip(wanted, pairs, strict=True)])
        true = torch.cat([held[objects] for held, (_, objects) in zip(around, pairs, strict=True)])
        target = torch.full(classes.shape[:2], classes.shape[-1] - 1, device=classes.device)
        target[rows, queries] = given
        total = total + class_loss(classes, target, max(1, len(true))) + box_loss(boxes[rows, queries], true)
    return total / len(found.boxes)


def class_loss(classes: Tensor, target: Tensor, count: int) -> Tensor:
    """Weighted mean of the cross-entropy, (B, Q, L + 1) against (B, Q), times `count`; -1 is left out."""
    weight = torch.ones(classes.shape[-1], device=classes.device)
    weight[-1] = NOTHING
    return count * F.cross_entropy(classes.flatten(0, 1), target.flatten(), weight, ignore_index=-1)


def box_loss(boxes: Tensor, true: Tensor) -> Tensor:
    """5 L1 + 2 (1 - GIoU), summed over (N, 4)."""
    _, shared = overlap(corners(boxes), corners(true))
    return NEAR * (boxes - true).abs().sum() + SHARED * (1 - shared).sum()
