"""The long kernels on a GPU: torch's FlexAttention, which skips the blocks that a rule hides.

A rule says whether query i may see key j; it is the same set as the mask of the twin. Called by `local.py`
and `bigbird.py` for tensors on CUDA; on CPUs `blocks.py` computes. Dong et al. 2024 (FlexAttention).
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import Tensor

from regard.attention.score import Dot

Rule = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]  # (batch, head, query, key) -> bool

Dense = Callable[..., tuple[Tensor, Tensor]]


def band_rule(before: int, after: int, shift: int) -> Rule:
    """Keys from `before` places before a query, which stands at key `shift + query`, to `after` after it."""

    def sees(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return (key - query - shift >= -before) & (key - query - shift <= after)

    return sees


def block_rule(seen: Tensor, block: int) -> Rule:
    """Keys whose block the query's block sees: `seen` (B, H, N, N)."""

    def sees(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return seen[batch, head, query // block, key // block]

    return sees


def attend_flex(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    rule: Rule,
    *,
    dense: Dense,
    **options: Any,
) -> Tensor:
    """What each query gathers by the rule: (B, H, T, K_v); through `dense` where Flex has no way."""
    factors = (options.get("score") or Dot(q.shape[-1] ** -0.5)).factors(q, k)
    if factors is None or options.get("bias") is not None or options.get("dropout", 0.0):
        return dense(q, k, v, **options)[0]
    mask = options.get("mask")
    return _flex(factors[0], factors[1], v, rule if mask is None else _real_only(rule, mask, q.shape[0]))


def _real_only(rule: Rule, mask: Tensor, rows: int) -> Rule:
    """The rule without the keys that a padding mask (B, 1, 1, S) hides."""
    real = mask[:, 0, 0].expand(rows, -1)  # (B, S)

    def sees(batch: Tensor, head: Tensor, query: Tensor, key: Tensor) -> Tensor:
        return rule(batch, head, query, key) & real[batch, key]

    return sees


def _flex(q: Tensor, k: Tensor, v: Tensor, rule: Rule) -> Tensor:
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    fast = q.device.type == "cuda"
    rows, heads, queries, _ = q.shape
    blocks = create_block_mask(rule, rows, heads, queries, k.shape[-2], device=str(q.device), _compile=fast)
    out: Tensor = (_compiled() if fast else flex_attention)(q, k, v, block_mask=blocks, scale=1.0)
    return out


@cache
def _compiled() -> Any:
    from torch.nn.attention.flex_attention import flex_attention

    return torch.compile(flex_attention, dynamic=False)
