"""Attention in blocks: each block of queries sees a span of keys around it and some further blocks.

Cost and memory grow with T, not T². The backward pass computes the weights again, piece by piece, so
nothing of the size of the scores outlives its piece (as in Dao et al. 2022). `local.py` and `bigbird.py`
say which keys a block sees; their twins are masks on `attend.py`. Sparse weights go to `sparse.py`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.attention.dropout import draw

HIDDEN = -1e30  # added to the score of a key that is not seen
PIECE = 2**18  # scores in one piece: they stay in the cache, yet a product is large enough to be quick


@dataclass(frozen=True)
class Plan:
    """What a block of queries sees. Query i stands at key `shift + i`.

    The span of a block begins `left` keys before it and ends `right` keys after it, both multiples of
    `block`; `window` narrows it to so many keys (before, after) each query.
    """

    block: int
    left: int
    right: int
    shift: int = 0
    window: tuple[int, int] | None = None
    further: Tensor | None = None  # (B, H, N, M) numbers of key blocks outside of the span; -1: none

    @property
    def span(self) -> int:
        return self.left + self.block + self.right

    def band(self, like: Tensor) -> Tensor | None:
        """What the window adds to the scores: (block, span); None where all of the span is seen."""
        if self.window is None:
            return None
        places = torch.arange(self.span, device=like.device) - self.left  # of the keys, from the block on
        apart = places - torch.arange(self.block, device=like.device)[:, None]
        seen = (apart >= -self.window[0]) & (apart <= self.window[1])
        return torch.zeros_like(seen, dtype=like.dtype).masked_fill_(~seen, HIDDEN)


@dataclass(frozen=True)
class _Piece:
    """`count` blocks of queries of one head of one row, and the keys [low, high) of their spans."""

    row: int
    head: int
    first: int
    count: int
    low: int
    high: int


class _Walk:
    """All pieces of one call, and what each of them reads and adds to."""

    def __init__(self, q: Tensor, k: Tensor, real: Tensor | None, plan: Plan) -> None:
        self.plan, self.queries, self.keys = plan, q.shape[-2], k.shape[-2]
        self.shape = q.shape[:2]
        kind = torch.float32 if q.dtype in (torch.bfloat16, torch.float16) else q.dtype
        self.band = plan.band(q.new_empty(0, dtype=kind))
        more = -self.keys % plan.block
        seen = torch.ones(1, self.keys, dtype=torch.bool, device=q.device) if real is None else real
        seen = F.pad(seen, (0, more)).expand(q.shape[0], -1)
        self.hidden = torch.zeros(seen.shape, dtype=kind, device=q.device).masked_fill_(~seen, HIDDEN)
        self.plain = [self.keys] * q.shape[0]  # keys before the first hidden one
        if real is not None:
            self.plain = [int(row.long().argmin()) if not bool(row.all()) else len(row) for row in real]
            self.plain = [min(each, self.keys) for each in self.plain]

    def heads(self) -> Iterator[tuple[int, int]]:
        """Every head of every row."""
        return product(range(self.shape[0]), range(self.shape[1]))

    def pieces(self, row: int, head: int) -> Iterator[_Piece]:
        """The pieces of one head, in order."""
        plan, blocks = self.plan, -(-self.queries // self.plan.block)
        further = 0 if plan.further is None else plan.further.shape[-1]
        count = max(1, PIECE // (plan.block * (plan.span + further * plan.block)))
        for first in range(0, blocks, count):
            many = min(count, blocks - first)
            low = plan.shift + first * plan.block - plan.left
            high = plan.shift + (first + many) * plan.block + plan.right
            yield _Piece(row, head, first, many, low, high)

    def own(self, x: Tensor, row: int, head: int) -> Tensor:
        """The rows of x (B, H, S, K) of one head, whole blocks of them, side by side in memory."""
        return F.pad(x[row, head], (0, 0, 0, self.hidden.shape[1] - self.keys))  # (S', K)

    def queries_of(self, x: Tensor, piece: _Piece) -> Tensor:
        """The rows of x (B, H, T, K) that belong to the piece's queries: (count, block, K)."""
        block = self.plan.block
        rows = x[piece.row, piece.head, piece.first * block : (piece.first + piece.count) * block]
        missing = piece.count * block - rows.shape[0]
        rows = F.pad(rows, (0, 0, 0, missing)) if missing else rows
        return rows.reshape(piece.count, block, x.shape[-1])

    def keys_of(self, own: Tensor, piece: _Piece) -> Tensor:
        """The rows of `own` (S', K) that the piece sees: (count, span + further, K)."""
        low, high, end, width = piece.low, piece.high, own.shape[0], own.shape[1]
        inside = own[max(0, low) : max(0, min(end, high))]
        if low < 0 or high > end:
            inside = F.pad(inside, (0, 0, max(0, -low), high - max(low, 0) - inside.shape[0]))
        strides = (self.plan.block * width, width, 1)
        span = inside.as_strided((piece.count, self.plan.span, width), strides, inside.storage_offset())
        numbers = self._further(piece)
        if numbers is None:
            return span
        more = own.view(-1, self.plan.block * width).index_select(0, numbers.clamp(min=0).flatten())
        return torch.cat([span, more.view(piece.count, -1, width)], 1)

    def put(self, x: Tensor, part: Tensor, piece: _Piece) -> None:
        """Write (count·block, K) into the rows of x (B, H, T, K) that are the piece's queries."""
        start = piece.first * self.plan.block
        x[piece.row, piece.head, start : start + part.shape[0]] = part[: self.queries - start]

    def _further(self, piece: _Piece) -> Tensor | None:
        """The numbers (count, M) of the further blocks."""
        if self.plan.further is None:
            return None
        return self.plan.further[piece.row, piece.head, piece.first : piece.first + piece.count]

    def hide(self, scores: Tensor, piece: _Piece) -> Tensor:
        """The scores (count, block, span + further), those of keys that are not seen pushed down."""
        span, (low, high) = self.plan.span, (piece.low, piece.high)
        if self.band is not None:
            for part in _edges(self.plan):
                scores[..., part] += self.band[:, part]
        if low < 0 or high > self.plain[piece.row]:
            scores[..., :span] += self._hidden_span(piece)
        numbers = self._further(piece)
        if numbers is not None:
            blocks = self.hidden[piece.row].view(-1, self.plan.block)
            more = blocks[numbers.clamp(min=0)].masked_fill((numbers < 0)[..., None], HIDDEN)
            scores[..., span:] += more.flatten(1)[:, None]
        return scores

    def _hidden_span(self, piece: _Piece) -> Tensor:
        own = self.hidden[piece.row, max(0, piece.low) : max(0, piece.high)]
        before = max(0, -piece.low)
        after = piece.high - piece.low - before - own.shape[0]
        own = F.pad(own, (before, after), value=HIDDEN)
        return own.as_strided((piece.count, 1, self.plan.span), (self.plan.block, 0, 1))

    def weights(self, queries: Tensor, keys: Tensor, piece: _Piece) -> Tensor:
        """Attention weights (count, block, span + further) in the type of the scores."""
        scores = torch.bmm(queries, keys.transpose(1, 2)).to(self.hidden.dtype)
        weights = self.hide(scores, piece).softmax(-1)
        if self.plain[piece.row] < self.keys:
            blind = scores.amax(-1, keepdim=True) <= HIDDEN / 2
            weights = weights.masked_fill_(blind, 0.0)
        return weights

    def add_keys(self, total: Tensor, part: Tensor, piece: _Piece) -> None:
        """Add (count, span + further, K) to the rows of `total` (S', K) that they belong to."""
        plan, (end, width) = self.plan, total.shape
        steps = plan.span // plan.block
        inside = part[:, : plan.span].view(piece.count, steps, plan.block, width)
        joined = part.new_zeros(piece.count + steps - 1, plan.block, width)
        for step in range(steps):
            joined[step : step + piece.count] += inside[:, step]
        low, high = max(0, piece.low), max(0, min(end, piece.high))
        if high > low:
            total[low:high] += joined.view(-1, width)[low - piece.low : high - piece.low]
        numbers = self._further(piece)
        if numbers is not None:  # a block that is not there has weights of zero
            rows = part[:, plan.span :].reshape(-1, plan.block * width)
            total.view(-1, plan.block * width).index_add_(0, numbers.clamp(min=0).flatten(), rows)


def _edges(plan: Plan) -> list[slice]:
    """The columns of a span that the window cuts into; the ones between are seen by every query."""
    assert plan.window is not None
    before, after = plan.window
    left = plan.left - before + plan.block - 1  # the last query does not see the first `left` columns
    right = plan.left + after + 1  # the first query sees none from here on
    if left >= right:
        return [slice(None)]
    return [slice(0, left), slice(right, None)]


class _Blocks(torch.autograd.Function):
    """softmax(q kᵀ) v over the keys of the plan; saves its inputs alone."""

    @staticmethod
    def forward(
        ctx: Any, q: Tensor, k: Tensor, v: Tensor, real: Tensor | None, plan: Plan, dropout: float
    ) -> Tensor:
        rows, heads, queries, _ = q.shape
        ctx.save_for_backward(q, k, v)
        ctx.real, ctx.plan, ctx.cut = real, plan, round(dropout * 256)
        ctx.seed = int(torch.randint(2**60, ())) if ctx.cut else 0
        out = v.new_empty(rows, queries, heads, v.shape[-1]).transpose(1, 2)
        walk = _Walk(q, k, real, plan)
        with torch.autocast(q.device.type, enabled=False):
            for row, head in walk.heads():
                keys, values = walk.own(k, row, head), walk.own(v, row, head)
                for piece in walk.pieces(row, head):
                    weights = walk.weights(walk.queries_of(q, piece), walk.keys_of(keys, piece), piece)
                    _drop(weights, ctx.cut, (ctx.seed, piece))
                    part = torch.bmm(weights.to(v.dtype), walk.keys_of(values, piece)).flatten(0, 1)
                    walk.put(out, part, piece)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        q, k, v = ctx.saved_tensors
        walk, grad = _Walk(q, k, ctx.real, ctx.plan), grads[0].to(v.dtype)
        grad_q, grad_k, grad_v = (torch.empty_like(x.transpose(1, 2)).transpose(1, 2) for x in (q, k, v))
        for row, head in walk.heads():
            own = walk.own(k, row, head), walk.own(v, row, head)
            totals = torch.zeros_like(own[0]), torch.zeros_like(own[1])
            for piece in walk.pieces(row, head):
                mine, wanted = walk.queries_of(q, piece), walk.queries_of(grad, piece)
                keys, values = (walk.keys_of(x, piece) for x in own)
                weights = walk.weights(mine, keys, piece)
                towards = torch.bmm(wanted, values.transpose(1, 2)).to(weights.dtype)
                kept = _drop(weights.clone(), ctx.cut, (ctx.seed, piece)) if ctx.cut else weights
                _drop(towards, ctx.cut, (ctx.seed, piece))
                walk.add_keys(totals[1], torch.bmm(kept.to(v.dtype).transpose(1, 2), wanted), piece)
                scores = torch._softmax_backward_data(towards, weights, -1, weights.dtype).to(q.dtype)
                walk.add_keys(totals[0], torch.bmm(scores.transpose(1, 2), mine), piece)
                walk.put(grad_q, torch.bmm(scores, keys).flatten(0, 1), piece)
            for total, gradient in zip(totals, (grad_k, grad_v), strict=True):
                gradient[row, head] = total[: walk.keys]
        return grad_q, grad_k, grad_v, None, None, None


def _drop(weights: Tensor, cut: int, mark: tuple[int, _Piece]) -> Tensor:
    """The weights, in place, with an element zeroed with probability cut/256: the same ones for a mark."""
    if cut:
        seed, piece = mark
        place = (piece.row * 65537 + piece.head) * 2**24 + piece.first
        generator = torch.Generator().manual_seed(seed + place)
        weights.mul_(draw(weights, cut, generator)).mul_(256 / (256 - cut))
    return weights


def attend_blocks(
    q: Tensor, k: Tensor, v: Tensor, *, real: Tensor | None, plan: Plan, dropout: float = 0.0
) -> Tensor:
    """What each query gathers from the keys of its plan: (B, H, T, K_v).

    q (B, H, T, K), k (B, H, S, K), v (B, H, S, K_v); the score is q·k; `real` (B, S) is True where a key
    may be seen.
    """
    out: Tensor = _Blocks.apply(q, k, v, real, plan, dropout)  # type: ignore[no-untyped-call]
    return out


def show_blocks(q: Tensor, k: Tensor, *, real: Tensor | None, plan: Plan) -> tuple[Tensor, Tensor]:
    """The weights (B, H, N·block, M) of each query and the places (B, H, N, M) they lie on; -1: none."""
    walk = _Walk(q, k, real, plan)
    blocks = -(-q.shape[-2] // plan.block)
    values: list[Tensor] = []
    for row, head in walk.heads():
        keys = walk.own(k, row, head)
        for piece in walk.pieces(row, head):
            values.append(walk.weights(walk.queries_of(q, piece), walk.keys_of(keys, piece), piece))
    together = torch.cat(values).view(*q.shape[:2], blocks * plan.block, -1)
    starts = plan.shift - plan.left + torch.arange(blocks, device=q.device)[:, None] * plan.block
    places = (starts + torch.arange(plan.span, device=q.device)).expand(*q.shape[:2], -1, -1)
    if plan.further is not None:
        numbers = plan.further[..., None] * plan.block
        more = (numbers + torch.arange(plan.block, device=q.device)).masked_fill(numbers < 0, -1)
        places = torch.cat([places, more.flatten(-2)], -1)
    return together, places.masked_fill((places < 0) | (places >= k.shape[-2]), -1)
