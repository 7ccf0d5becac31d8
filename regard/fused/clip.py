"""How long gradients are, and how they are cut short: one call for all, where torch takes one for each.

The twin is torch's own, below. A tensor's norm depends on its numbers alone, wherever they lie and whatever
is asked beside it. regard/training/owners.py asks.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from regard.fused.library import Span, call_for, knows


def norms(tensors: Sequence[Tensor]) -> Tensor:
    """The norm of each (N,), fp32."""
    if not tensors or not _fits(tensors):
        found = [torch.linalg.vector_norm(each).float() for each in tensors]
        return torch.stack(found) if found else torch.zeros(0)
    flat = [each.contiguous() for each in tensors]
    made = torch.empty(len(flat))
    call_for("norms", _spans(flat), made.data_ptr())
    return made


def clip(tensors: Sequence[Tensor], norm: float, most: float) -> None:
    """Make tensors whose norm is `norm` together no longer than `most`, in place."""
    factor = most / (norm + 1e-6)
    if factor >= 1:
        return
    if tensors and _fits(tensors) and all(each.is_contiguous() for each in tensors):
        call_for("scale", _spans(tensors), factor)
    else:
        torch._foreach_mul_(list(tensors), factor)


def _fits(tensors: Sequence[Tensor]) -> bool:
    return knows(*tensors) and all(each.dtype == torch.float32 for each in tensors)


def _spans(tensors: Sequence[Tensor]) -> list[Span]:
    return [Span(each.data_ptr(), each.numel()) for each in tensors]
