"""residual + dropout(x) in one pass, without a mask in memory: what stays is a hash of seed and place.

The seed is drawn from torch's generator, so a saved state of it replays the masks; the backward pass makes
them again. `keep` is the readable twin of the hash. regard/attention/dropout.py decides when it is taken.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.fused.library import KINDS, Dropout, call, knows

_WORD = 2**32


def fits(x: Tensor, residual: Tensor | None) -> bool:
    """Whether the loops can take it: numbers that lie side by side, and an fp32 residual if there is one."""
    if not knows(x) or not x.is_contiguous():
        return False
    return residual is None or (
        knows(residual)
        and residual.dtype == torch.float32
        and residual.is_contiguous()
        and residual.shape == x.shape
    )


def dropout(x: Tensor, p: float, *, residual: Tensor | None = None) -> Tensor:
    """residual + dropout(x) in the residual's type, or dropout(x) in that of x; for what `fits`."""
    out: Tensor = _Dropout.apply(x, residual, p)  # type: ignore[no-untyped-call]
    return out


def keep(seed: int, size: int, p: float) -> Tensor:
    """Which of `size` elements stay under a seed of 64 bits: the hash of loops.inc, as torch has it."""
    place = torch.arange(size) ^ (seed % _WORD)
    h = place * 0x9E3779B1 % _WORD
    h = ((h ^ (h >> 16)) + (seed >> 32)) % _WORD
    h = h * 0x85EBCA6B % _WORD
    h = (h ^ (h >> 13)) * 0xC2B2AE35 % _WORD
    return (h ^ (h >> 16)) >= _cut(p)


def _cut(p: float) -> int:
    return round(p * _WORD)


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, residual: Tensor | None, p: float) -> Tensor:
        ctx.seed = int(torch.empty((), dtype=torch.int64).random_()) * 2 + 1
        ctx.p, ctx.kind, ctx.with_residual = p, x.dtype, residual is not None
        return _drop(x, residual, ctx, x.dtype if residual is None else residual.dtype)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        grad_x = _drop(grads[0].contiguous(), None, ctx, ctx.kind)
        return grad_x, grads[0] if ctx.with_residual else None, None


def _drop(x: Tensor, residual: Tensor | None, ctx: Any, kind: torch.dtype) -> Tensor:
    out = torch.empty_like(x, dtype=kind)
    layout = Dropout(KINDS[x.dtype], KINDS[kind], x.numel(), ctx.seed, _cut(ctx.p), 1 / (1 - ctx.p))
    layout.residual = None if residual is None else residual.data_ptr()
    layout.y, layout.out = x.data_ptr(), out.data_ptr()
    call("dropout", layout)
    return out
