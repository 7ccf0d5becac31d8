"""Dropout by random bytes: the same law as torch's, at a tenth of its cost on a CPU.

Where there are native loops, `regard/fused/dropout.py` does it. Without them torch would draw one
Bernoulli number an element; here eight elements share one 64-bit draw and a threshold decides. The
probability is rounded to 1/256 and the scale matches the rounded one, so the expectation is exact. The
generator is torch's own either way, so a saved RNG state replays the masks.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.fused import dropout as fused


def draw(x: Tensor, cut: int, generator: torch.Generator | None = None) -> Tensor:
    """Ones and zeros in the shape and type of `x`; an element is 0 with probability cut/256."""
    words = torch.empty((x.numel() + 7) // 8, dtype=torch.int64).random_(-(2**63), None, generator=generator)
    octets = words.view(torch.int8)[: x.numel()].view(x.shape)
    return torch.ge(octets, cut - 128, out=torch.empty(x.shape, dtype=x.dtype))


class _AddDropped(torch.autograd.Function):
    """residual + dropout(x) in one pass; residual may be absent."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, residual: Tensor | None, cut: int) -> Tensor:
        keep = draw(x, cut)
        ctx.scale = 256 / (256 - cut)
        ctx.with_residual = residual is not None
        ctx.save_for_backward(keep)
        if residual is None:
            return (x * keep).mul_(ctx.scale)
        return torch.addcmul(residual, x, keep, value=ctx.scale)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        (keep,) = ctx.saved_tensors
        grad_x = (grads[0] * keep).mul_(ctx.scale)
        return grad_x, grads[0] if ctx.with_residual else None, None


def dropout(x: Tensor, p: float, *, training: bool, residual: Tensor | None = None) -> Tensor:
    """`residual + dropout(x)`, or `dropout(x)` where there is no residual; off where p is 0 or below."""
    cut = round(p * 256)
    if not training or cut <= 0:
        return x if residual is None else residual + x
    if fused.fits(x, residual):
        return fused.dropout(x, p, residual=residual)
    if x.device.type != "cpu" or (residual is not None and residual.dtype != x.dtype):
        dropped = F.dropout(x, p)
        return dropped if residual is None else residual + dropped
    result: Tensor = _AddDropped.apply(x, residual, cut)  # type: ignore[no-untyped-call]
    return result
