"""Rotary positions in one pass over queries or keys, and back again for the gradient.

The twin is the formula in regard/attention/rotary.py, which decides when this one is taken.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.fused.library import KINDS, Turn, call, heads, knows


def fits(x: Tensor) -> bool:
    """Whether the loops can take x (B, H, T, K)."""
    return knows(x) and x.dim() == 4 and x.stride(-1) == 1


def turn(x: Tensor, table: Tensor) -> Tensor:
    """x (B, H, T, K) by the angles whose sines and cosines are table (T, K), fp32; for what `fits`."""
    out: Tensor = _Turn.apply(x, table)  # type: ignore[no-untyped-call]
    return out


class _Turn(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, table: Tensor) -> Tensor:
        ctx.save_for_backward(table)
        return _turn(x, table, 1.0)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        grad = grads[0] if grads[0].stride(-1) == 1 else grads[0].contiguous()
        return _turn(grad, ctx.saved_tensors[0], -1.0), None


def _turn(x: Tensor, table: Tensor, sign: float) -> Tensor:
    rows, n_heads, length, width = x.shape
    out = x.new_empty(rows, length, n_heads, width).transpose(1, 2)  # heads side by side, as they came
    layout = Turn(KINDS[x.dtype], rows, n_heads, length, width, sign, table.data_ptr(), heads(x), heads(out))
    call("turn", layout)
    return out
