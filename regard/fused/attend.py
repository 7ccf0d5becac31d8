"""Attention over short sequences, forward and backward in one pass each: nothing but q, k and v is kept.

torch takes a dozen passes over (B, H, T, S) scores for it, and casts. Here a head's tile stays in the
cache from the scores to the output, and the weights are computed again in the backward pass. The twin is
`attend_readable` in regard/attention/attend.py, which decides when this one is taken.
"""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from regard.fused.library import KINDS, Attention, call, heads, knows

Window = tuple[int, int]  # keys that a query sees before its own place and after it; -1: all
EVERYWHERE: Window = (-1, -1)


def fits(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> bool:
    """Whether the loops can take it: one type and width, and a mask of keys alone (B or 1, 1, 1, S)."""
    if not knows(q, k, v) or not q.dtype == k.dtype == v.dtype or q.shape[-1] != v.shape[-1]:
        return False
    if any(x.stride(-1) != 1 or x.shape[:2] != q.shape[:2] for x in (q, k, v)):
        return False
    return mask is None or (mask.dim() == 4 and mask.shape[1:3] == (1, 1) and mask.shape[3] == k.shape[2])


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: Tensor | None = None,
    causal: bool = False,
    scale: float = 1.0,
    window: Window = EVERYWHERE,
) -> Tensor:
    """q (B, H, T, K), k and v (B, H, S, K) -> (B, H, T, K), for what `fits`."""
    out: Tensor = _Attend.apply(q, k, v, mask, causal, scale, window)  # type: ignore[no-untyped-call]
    return out


class _Attend(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Tensor | None,
        *options: Any,  # causal, scale, window
    ) -> Tensor:
        seen = None if mask is None else mask[:, 0, 0].expand(q.shape[0], -1)
        seen = None if seen is None else seen if seen.stride(1) == 1 else seen.contiguous()
        ctx.save_for_backward(q, k, v, seen)
        ctx.options = options
        out = _like(q)
        layout = _layout(q, k, v, seen, *options)
        layout.out = heads(out)
        call("attend", layout, 0)
        return out

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v, seen = ctx.saved_tensors
        grad = grads[0] if grads[0].stride(-1) == 1 else grads[0].contiguous()
        layout, made = _layout(q, k, v, seen, *ctx.options), (_like(q), _like(k), _like(v))
        layout.grad = heads(grad)
        layout.grad_q, layout.grad_k, layout.grad_v = map(heads, made)
        call("attend", layout, 1)
        return *made, None, None, None, None


def _like(x: Tensor) -> Tensor:
    """Room for (B, H, T, K), laid out as (B, T, H, K): joining the heads costs nothing then."""
    batch, n_heads, length, width = x.shape
    return x.new_empty(batch, length, n_heads, width).transpose(1, 2)


def _layout(
    q: Tensor, k: Tensor, v: Tensor, seen: Tensor | None, causal: bool, scale: float, window: Window
) -> Attention:
    rows, n_heads, queries, width = q.shape
    layout = Attention(KINDS[q.dtype], causal, rows, n_heads, queries, k.shape[2], width, *window, scale)
    if seen is not None:
        layout.seen, layout.seen_step = seen.data_ptr(), seen.stride(0)
    layout.q, layout.k, layout.v = map(heads, (q, k, v))
    return layout
