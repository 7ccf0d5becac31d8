"""Attention weights that are mostly zero, as a value: what a long kernel shows instead of T × S numbers.

Made by `local.py` and `bigbird.py`, read by whoever looks (`tape[name]`). A part holds some queries in
blocks; all queries of a block see the same places.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from regard.errors import UsageError

DENSE = 4096 * 4096  # weights a head that are still written out


@dataclass(frozen=True)
class Part:
    """The weights of the queries from `first` on."""

    first: int
    values: Tensor  # (B, H, n, M)
    places: Tensor  # (B, H, N, M), N blocks that cover the n queries; -1 where there is no key
    block: int  # queries in one block


@dataclass(frozen=True)
class SparseWeights:
    """Weights (B, H, T, S) of which only those that may differ from zero are held."""

    parts: tuple[Part, ...]
    shape: tuple[int, int, int, int]

    def detach(self) -> "SparseWeights":
        """The same without gradients."""
        parts = tuple(replace(part, values=part.values.detach()) for part in self.parts)
        return SparseWeights(parts, self.shape)

    def row(self, batch: int, head: int, query: int) -> tuple[Tensor, Tensor]:
        """What one query sees: the places (n,) in their order, and their weights (n,)."""
        part = next(part for part in reversed(self.parts) if part.first <= query)
        at = query - part.first
        places = part.places[batch, head, at // part.block]
        there = places >= 0
        order = places[there].argsort()
        return places[there][order], part.values[batch, head, at][there][order]

    def to_dense(self) -> Tensor:
        """All of them (B, H, T, S), for sequences that are short enough to be looked at whole."""
        rows, heads, queries, keys = self.shape
        if queries * keys > DENSE:
            raise UsageError(
                f"{queries} x {keys} attention weights are too many to write out (at most {DENSE}); "
                "read them row by row"
            )
        like = self.parts[0].values
        whole = torch.zeros(rows, heads, queries, keys + 1, dtype=like.dtype, device=like.device)
        for part in self.parts:
            n = part.values.shape[2]
            places = part.places.repeat_interleave(part.block, 2)[:, :, :n]
            whole[:, :, part.first : part.first + n].scatter_(-1, places % (keys + 1), part.values)
        return whole[..., :keys]
