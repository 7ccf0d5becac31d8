"""Where masks are born. A mask is boolean, True = may attend, and broadcasts to (B, H, T, S).

Masks are joined with `&`; None means that everything is seen. A row with nothing to see gives
zeros out of `attend`, never NaN. The masks go down into `attend.py`.
"""

import torch
from torch import Tensor


def padding_mask(real: Tensor) -> Tensor:
    """Keys that are padding are not seen: `real` (B, S) -> (B, 1, 1, S)."""
    return real[:, None, None, :]


def causal_mask(queries: int, keys: int, device: torch.device | None = None) -> Tensor:
    """Query i sees keys up to its own place: (T, S); the last query stands at the last key.

    >>> causal_mask(2, 3).int().tolist()
    [[1, 1, 0], [1, 1, 1]]
    """
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)


def band_mask(queries: int, keys: int, before: int, after: int, device: torch.device | None = None) -> Tensor:
    """Query i sees keys from `before` places before its own to `after` after it: (T, S).

    The last query stands at the last key.

    >>> band_mask(3, 3, 1, 0).int().tolist()
    [[1, 0, 0], [1, 1, 0], [0, 1, 1]]
    """
    everything = torch.ones(queries, keys, dtype=torch.bool, device=device)
    return everything.tril(keys - queries + after).triu(keys - queries - before)


def block_mask(seen: Tensor, block: int, queries: int, keys: int) -> Tensor:
    """Each query of a block sees each key of the blocks that its own sees: (.., N, M) -> (.., T, S)."""
    whole = seen.repeat_interleave(block, -2).repeat_interleave(block, -1)
    return whole[..., :queries, :keys]


def join(*masks: Tensor | None) -> Tensor | None:
    """What all of the masks allow; None where there is none."""
    joined: Tensor | None = None
    for mask in masks:
        if mask is not None:
            joined = mask if joined is None else joined & mask
    return joined
