"""The norm in front of a sub-layer and the way round it, as one: the backward pass adds the two gradients up.

Under autocast the normed rows are written in bf16 at once, which is what the products after them read. The
twin is torch's layer norm; regard/layers/residual.py decides when this one is taken.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from regard.fused.library import KINDS, Norm, call, knows

ROWS = 64  # of a piece in calls.cpp


def fits(x: Tensor, norm: nn.LayerNorm) -> bool:
    """Whether the loops can take it: fp32 rows that lie side by side, as wide as the norm."""
    whole = x.dtype == torch.float32 and x.is_contiguous() and norm.normalized_shape == x.shape[-1:]
    return whole and knows(x, *norm.parameters(recurse=False)) and x.numel() > 0


def fork(x: Tensor, norm: nn.LayerNorm) -> tuple[Tensor, Tensor]:
    """(norm(x), x), for what `fits`; the first in bf16 under autocast."""
    kind = torch.bfloat16 if torch.is_autocast_enabled("cpu") else torch.float32
    normed, same = _Fork.apply(x, norm.weight, norm.bias, norm.eps, kind)  # type: ignore[no-untyped-call]
    return normed, same


class _Fork(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, gain: Tensor | None, bias: Tensor | None, epsilon: float, kind: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        normed = torch.empty_like(x, dtype=kind)
        stats = x.new_empty(2, x.numel() // x.shape[-1])  # mean and 1 / deviation of each row
        ctx.save_for_backward(x, gain, bias, stats)
        ctx.epsilon = epsilon
        layout = _layout(x, gain, stats, normed, epsilon)
        layout.bias = None if bias is None else bias.data_ptr()
        call("norm", layout, 0)
        return normed, x

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        x, gain, bias, stats = ctx.saved_tensors
        grad, passed, grad_x = grads[0].contiguous(), grads[1].contiguous(), torch.empty_like(x)
        layout = _layout(x, gain, stats, grad, ctx.epsilon)
        partial = x.new_empty(-(-layout.rows // ROWS), 2, layout.width)
        layout.passed, layout.grad_x, layout.partial = (t.data_ptr() for t in (passed, grad_x, partial))
        call("norm", layout, 1)
        of_gain, of_bias = partial.sum(0)
        return grad_x, None if gain is None else of_gain, None if bias is None else of_bias, None, None


def _layout(x: Tensor, gain: Tensor | None, stats: Tensor, y: Tensor, epsilon: float) -> Norm:
    layout = Norm(KINDS[y.dtype], x.numel() // x.shape[-1], x.shape[-1], epsilon, x.data_ptr())
    layout.gain = None if gain is None else gain.data_ptr()
    layout.y, layout.mean, layout.scale = y.data_ptr(), stats[0].data_ptr(), stats[1].data_ptr()
    return layout
