"""Relative positions: a learned vector for each distance, on keys and values (Shaw et al. 2018).

    score_ij += q_i · a_d / √K,   out_i += Σ_j w_ij b_d,   d = clip(j - i, -c, c)

There are only 2c + 1 distances, so q·a is one small product whose columns are laid along the diagonals, and
the values are gathered as the weight at each distance times its vector; nothing is (T, S, K). Beyond the clip
all distances are one, so any length works. Used by `heads.py`; `structural.py` has distances in a tree.
"""

from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.attention.linear import gaussian
from regard.attention.order import Positions


class Relative(Positions):
    """Vectors for the distances -clip to clip, shared by the heads of one attention."""

    needs_weights = True
    matrices: ClassVar = {"key_embedding": 0, "value_embedding": 0}  # a vector a distance

    def __init__(self, d_head: int, clip: int) -> None:
        super().__init__()
        self.clip, self.scale = clip, d_head**-0.5
        self.key_embedding = gaussian(2 * clip + 1, d_head)
        self.value_embedding = gaussian(2 * clip + 1, d_head)

    def bias(self, q: Tensor, keys: int, offset: int = 0, places: Any = None) -> Tensor:
        by_distance = torch.matmul(q * self.scale, self.key_embedding.mT)  # (B, H, T, 2c + 1)
        return skew(_spread(by_distance, *_reach(q.shape[-2], keys, offset, self.clip)), keys)

    def gather(self, weights: Tensor, offset: int = 0, places: Any = None) -> Tensor:
        reach = _reach(weights.shape[-2], weights.shape[-1], offset, self.clip)
        return torch.matmul(_collect(unskew(weights), *reach, self.clip), self.value_embedding)


def _reach(queries: int, keys: int, offset: int, clip: int) -> tuple[int, int, int, int]:
    """How the distances that occur lie over those that have a vector.

    The last query meets distances from `low` on and the first one up to `high`. Left and right of the
    clipped ones, `before` and `after` columns are copies; the clipped ones seen are `first` to `last`.
    """
    low, high = -(offset + queries - 1), keys - 1 - offset
    before, after = max(0, -clip - low), max(0, high - clip)
    return before, after, max(low, -clip) + clip, min(high, clip) + clip


def _spread(by_distance: Tensor, before: int, after: int, first: int, last: int) -> Tensor:
    """Columns of 2c + 1 distances -> one column for each of the T + S - 1 that occur, and one unused."""
    lead = by_distance.shape[:-1]
    return torch.cat(
        [
            by_distance[..., :1].expand(*lead, before),
            by_distance[..., first : last + 1],
            by_distance[..., -1:].expand(*lead, after + 1),
        ],
        -1,
    )


def _collect(weights: Tensor, before: int, after: int, first: int, last: int, clip: int) -> Tensor:
    """The adjoint of `_spread`: what lies at each of the 2c + 1 distances, summed."""
    end = weights.shape[-1] - after - 1
    middle = F.pad(weights[..., before:end], (first, 2 * clip - last))  # (B, H, T, 2c + 1)
    if before:
        middle[..., 0] += weights[..., :before].sum(-1)
    if after:
        middle[..., -1] += weights[..., end:-1].sum(-1)
    return middle


def skew(columns: Tensor, keys: int) -> Tensor:
    """Columns by distance (..., T, T + S) -> by key (..., T, S): row i begins i columns further left.

    >>> skew(torch.tensor([[1, 2, 3, 4], [1, 2, 3, 4]]), 2)  # distances -1, 0, 1, and one unused
    tensor([[2, 3],
            [1, 2]])
    """
    queries, width = columns.shape[-2:]
    lead = columns.shape[:-2]
    flat = columns.flatten(-2)[..., queries - 1 : queries - 1 + queries * (width - 1)]
    return flat.reshape(*lead, queries, width - 1)[..., :keys]


def unskew(weights: Tensor) -> Tensor:
    """By key (..., T, S) -> by distance (..., T, T + S), zero where there is no key: undoes `skew`."""
    queries, keys = weights.shape[-2:]
    flat = F.pad(weights, (0, queries - 1)).flatten(-2)  # rows of T + S - 1
    return F.pad(flat, (queries - 1, 1)).view(*weights.shape[:-1], queries + keys)
