"""Cross-entropy over rows of logits in two passes, the second of which leaves the gradient in their place.

regard/training/loss.py calls it slice by slice and has the readable twin.
"""

import torch
from torch import Tensor

from regard.fused.library import KINDS, CrossEntropy, call, knows


def fits(logits: Tensor, targets: Tensor) -> bool:
    """Whether the loops can take it."""
    return knows(logits) and logits.is_contiguous() and targets.dtype == torch.int64


def cross_entropy(logits: Tensor, targets: Tensor, smoothing: float, *, gradient: bool) -> Tensor:
    """The loss (N,) of logits (N, V) for targets (N,); with `gradient` the logits become its gradient."""
    losses = logits.new_empty(logits.shape[0], dtype=torch.float32)
    goals = targets.contiguous()
    layout = CrossEntropy(KINDS[logits.dtype], *logits.shape, smoothing, gradient)
    layout.targets, layout.logits, layout.losses = (t.data_ptr() for t in (goals, logits, losses))
    call("cross_entropy", layout)
    return losses
