"""The additive score, v·tanh(W q + U k), of Bahdanau et al. (2015), in slices.

Written out it needs a tanh for every query, key and hidden unit. With tanh(a + b) = 1 - 2 / (1 + e^2a e^2b)
the exponentials are taken once a query and once a key, and a pair costs a product and a division: four times
quicker than the tanh. No slice holds more than `SLICE` numbers; the backward pass makes the slices again, so
that training too needs no (T, S, hidden) tensor. One of the kinds of `score.py`.
"""

from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from regard.attention.linear import gaussian
from regard.attention.score import Score

HIDDEN = 16  # units a head: at T = 128 a training step then takes less than twice that of scaled dot
SLICE = 1 << 18  # numbers in one slice, or one query's row of keys where that is more; 1 MB of fp32
SATURATED = 20.0  # tanh is 1 long before; e^2a e^2b stays finite in fp32


class Additive(Score):
    """A small network scores each pair: (B, H, T, K), (B, H, S, K) -> (B, H, T, S)."""

    def __init__(self, n_heads: int, d_head: int, hidden: int = HIDDEN) -> None:
        super().__init__()
        self.query = nn.Parameter(torch.empty(n_heads, hidden, d_head))
        self.key = nn.Parameter(torch.empty(n_heads, hidden, d_head))
        self.value = gaussian(n_heads, 1, hidden)
        for weight in (self.query, self.key):
            for head in weight:
                nn.init.xavier_uniform_(head)

    def forward(self, q: Tensor, k: Tensor) -> Tensor:
        a = torch.matmul(self.query, q.transpose(-2, -1))  # (B, H, A, T)
        b = torch.matmul(self.key, k.transpose(-2, -1))  # (B, H, A, S)
        with torch.autocast(q.device.type, enabled=False):
            a, b = (_precise(x).clamp(-SATURATED, SATURATED) for x in (a, b))
            scores: Tensor = _Sliced.apply(a, b, self.value.to(a.dtype))  # type: ignore[no-untyped-call]
        return scores


def _precise(x: Tensor) -> Tensor:
    return x.float() if x.dtype in (torch.bfloat16, torch.float16) else x


class _Sliced(torch.autograd.Function):
    """Σ_u v_u tanh(a_u + b_u) for a (B, H, A, T), b (B, H, A, S), v (H, 1, A) -> (B, H, T, S)."""

    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor, v: Tensor) -> Tensor:
        ctx.save_for_backward(a, b, v)
        batch, heads, _, queries = a.shape
        keys = b.shape[-1]
        weights = v.repeat(batch, 1, 1)  # (N, 1, A), N = B·H
        scores = a.new_empty(batch * heads, queries, keys)
        for some, rows, r in _slices(a, b):
            part = torch.bmm(weights[some], r.flatten(2))  # (n, 1, t·S)
            scores[some, rows] = part.view(len(part), r.shape[2], keys)
        return torch.sub(v.sum(-1, keepdim=True), scores.view(batch, heads, queries, keys), alpha=2)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """With r = 1 / (1 + e^2(a+b)), tanh is 1 - 2r and its derivative 4 r (1 - r)."""
        a, b, v = ctx.saved_tensors
        grad = grads[0].flatten(0, 1)  # (N, T, S)
        grad_a, grad_b = torch.zeros_like(a).flatten(0, 1), torch.zeros_like(b).flatten(0, 1)
        summed = a.new_zeros(*grad_a.shape[:2], 1)  # (N, A, 1): Σ grad r
        for some, rows, r in _slices(a, b):
            part = grad[some, rows]  # (n, t, S)
            summed[some] += torch.bmm(r.flatten(2), part.flatten(1)[..., None])
            slope = r.addcmul_(r, r, value=-1).mul_(part[:, None])  # (n, A, t, S)
            grad_a[some, :, rows] = slope.sum(3)
            grad_b[some] += slope.sum(2)
        scale = 4 * v.mT  # (H, A, 1)
        total = grads[0].sum((0, 2, 3))[:, None, None]  # (H, 1, 1)
        grad_v = total - 2 * summed.view(*a.shape[:3], 1).sum(0).mT  # (H, 1, A)
        return grad_a.view_as(a).mul_(scale), grad_b.view_as(b).mul_(scale), grad_v


def _slices(a: Tensor, b: Tensor) -> Iterator[tuple[slice, slice, Tensor]]:
    """Sentences and heads (of N = B·H), queries, and r = 1 / (1 + e^2(a+b)) of them: (n, A, t, S)."""
    left, right = (x.flatten(0, 1).mul(2).exp_() for x in (a, b))  # (N, A, T), (N, A, S)
    queries, row = left.shape[2], max(1, left.shape[1] * right.shape[2])
    count = max(1, min(queries, SLICE // row))
    together = max(1, SLICE // (row * max(1, queries)))  # short sequences share a slice
    # One piece of memory for all slices: fresh pages cost more than the arithmetic.
    memory = left.new_empty(min(together, len(left)), left.shape[1], count, right.shape[2])
    for first in range(0, len(left), together):
        some = slice(first, first + together)
        for start in range(0, queries, count):
            rows = slice(start, start + count)
            query, key = left[some, :, rows, None], right[some, :, None]
            pairs = torch.mul(query, key, out=memory[: len(query), :, : query.shape[2]])  # (n, A, t, S)
            yield some, rows, pairs.add_(1).reciprocal_()
