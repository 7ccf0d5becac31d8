"""Attention as one pure function: out_i = Σ_j softmax_j(score(q_i, k_j)) v_j.

`attend` picks the quickest way; `weigh` and `attend_readable` are its slow twin, which can also
show the weights (Vaswani et al. 2017, 3.2). `regard/fused` has native loops for short sequences. Masks
come from `masks.py`, scores from `score.py`; `heads.py` puts projections around it.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from regard.attention.dropout import dropout as drop
from regard.attention.masks import band_mask, causal_mask, join
from regard.attention.score import Dot, Score
from regard.fused import attend as fused

# Up to this many scores a head, the native loops are taken instead of SDPA's CPU kernel when gradients are
# needed, or else, up to fewer, batched products: its backward pass is slow for short sequences.
NATIVE, SHORT = 512 * 512, 128 * 128
# From this many scores a head on, they are never all there at once: what torch's fused attention cannot do
# without them is done in slices of the queries, each computed again in the backward pass.
LONG = 4096 * 4096


def weigh(
    q: Tensor,
    k: Tensor,
    *,
    mask: Tensor | None = None,
    causal: bool = False,
    bias: Tensor | None = None,
    score: Score | None = None,
) -> Tensor:
    """Attention weights (B, H, T, S): each row sums to 1, or to 0 where nothing may be seen.

    q (B, H, T, K), k (B, H, S, K); `bias` is added to the scores, `causal` hides the future.

    >>> weigh(torch.zeros(1, 1, 1, 2), torch.zeros(1, 1, 2, 2)).tolist()
    [[[[0.5, 0.5]]]]
    """
    scores: Tensor = (score or Dot(q.shape[-1] ** -0.5))(q, k)  # (B, H, T, S)
    if bias is not None:
        scores = scores + bias
    if causal:
        mask = join(mask, causal_mask(q.shape[-2], k.shape[-2], q.device))
    if mask is None:
        return scores.softmax(-1)
    weights = scores.masked_fill(~mask, float("-inf")).softmax(-1)
    blind = ~mask.any(-1, keepdim=True)
    return weights.masked_fill(blind, 0.0) if blind.any() else weights


def attend_readable(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: Tensor | None = None,
    causal: bool = False,
    bias: Tensor | None = None,
    score: Score | None = None,
    dropout: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """The formula as it is written: (output (B, H, T, K_v), weights (B, H, T, S))."""
    weights = weigh(q, k, mask=mask, causal=causal, bias=bias, score=score)
    return torch.matmul(drop(weights, dropout, training=dropout > 0), v), weights


def attend(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: Tensor | None = None,
    causal: bool = False,
    bias: Tensor | None = None,
    score: Score | None = None,
    dropout: float = 0.0,
    window: tuple[int, int] | None = None,
) -> Tensor:
    """What each query gathers from the values: (B, H, T, K_v), by the quickest way.

    q (B, H, T, K), k (B, H, S, K), v (B, H, S, K_v); `mask` is True where a query may look. With a `window`
    it looks no further than so many places before and after its own, which is meant for short sequences:
    native loops go no further than that, and elsewhere it is one more mask.

    >>> v = torch.tensor([[[[1.0], [3.0]]]])
    >>> attend(torch.zeros(1, 1, 1, 2), torch.zeros(1, 1, 2, 2), v).item()
    2.0
    """
    scores, own = q.shape[-2] * k.shape[-2], q.device.type == "cpu"
    gradients = learns(q, k, v)
    score = score or Dot(q.shape[-1] ** -0.5)
    if _is_native(q, k, v, mask=mask, bias=bias, score=score, dropout=dropout):
        assert score.scale is not None
        return fused.attend(
            q, k, v, mask=mask, causal=causal, scale=score.scale, window=window or fused.EVERYWHERE
        )
    if window is not None:
        mask = join(mask, band_mask(q.shape[-2], k.shape[-2], *window, q.device))
    factors = None if own and scores <= SHORT and gradients else score.factors(q, k)
    options: dict[str, Any] = {
        "mask": mask,
        "causal": causal,
        "bias": bias,
        "score": score,
        "dropout": dropout,
    }
    if scores > LONG and not (factors and _is_fused(q, k, v, **options)):
        return _in_slices(q, k, v, gradients=gradients, **options)
    if factors is None:
        return attend_readable(q, k, v, **options)[0]
    return _sdpa(*factors, v, mask=_as_sdpa_mask(q, k, mask, causal, bias), causal=causal, dropout=dropout)


def learns(q: Tensor, k: Tensor, v: Tensor) -> bool:
    """Whether gradients are needed."""
    return torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad)


def _is_native(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    *,
    mask: Tensor | None,
    bias: Tensor | None,
    score: Score,
    dropout: float,
) -> bool:
    """Whether the native loops are the way: a short sequence that learns, and a plain product."""
    short = q.device.type == "cpu" and q.shape[-2] * k.shape[-2] <= NATIVE
    bare = bias is None and dropout == 0 and score.scale is not None
    return short and bare and learns(q, k, v) and fused.fits(q, k, v, mask)


def _is_fused(q: Tensor, k: Tensor, v: Tensor, **options: Any) -> bool:
    """Whether torch computes it without all scores: its CPU kernel has no dropout and one head width."""
    if options["bias"] is not None:
        return False
    if options["causal"] and (options["mask"] is not None or q.shape[-2] != k.shape[-2]):
        return False
    return q.device.type != "cpu" or (options["dropout"] == 0 and k.shape[-1] == v.shape[-1])


def _in_slices(q: Tensor, k: Tensor, v: Tensor, *, gradients: bool, **options: Any) -> Tensor:
    """`attend` for some queries at a time; where gradients are needed, nothing of a slice is kept."""
    queries, keys, parts = q.shape[-2], k.shape[-2], []
    rows = max(1, LONG // 8 // keys)
    for start in range(0, queries, rows):
        end = min(queries, start + rows)
        seen = keys - queries + end if options["causal"] else keys  # the rest lies in the future
        own = options | {
            name: each
            if each is None
            else each[..., start:end, :seen]
            if each.shape[-2] > 1
            else each[..., :seen]
            for name, each in (("mask", options["mask"]), ("bias", options["bias"]))
        }
        inputs = q[..., start:end, :], k[..., :seen, :], v[..., :seen, :]
        call: Callable[..., Tensor] = partial(attend, **own)
        parts.append(checkpoint(call, *inputs, use_reentrant=False) if gradients else call(*inputs))
    return torch.cat(parts, -2)


def _as_sdpa_mask(
    q: Tensor, k: Tensor, mask: Tensor | None, causal: bool, bias: Tensor | None
) -> Tensor | None:
    """One mask for SDPA: None where its own causal flag is enough, else boolean or added."""
    if causal and (mask is not None or bias is not None or q.shape[-2] != k.shape[-2]):
        mask = join(mask, causal_mask(q.shape[-2], k.shape[-2], q.device))
    if bias is None:
        return mask
    return bias if mask is None else bias.masked_fill(~mask, float("-inf"))


def _sdpa(q: Tensor, k: Tensor, v: Tensor, *, mask: Tensor | None, causal: bool, dropout: float) -> Tensor:
    """torch's fused attention, with zeros where a query may see nothing."""
    out = F.scaled_dot_product_attention(
        q, k, v, attn_mask=mask, dropout_p=dropout, is_causal=causal and mask is None, scale=1.0
    )
    if mask is None:
        return out
    seen = mask if mask.dtype == torch.bool else mask > float("-inf")
    blind = ~seen.any(-1, keepdim=True)
    return out.masked_fill(blind, 0.0) if blind.any() else out
