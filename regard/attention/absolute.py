"""Positions that are added to the embeddings: sinusoids, and learned vectors.

    p_i = [sin(i ω_1) ... sin(i ω_n) | cos(i ω_1) ... cos(i ω_n)],  ω_m = 10000^(-2m/D)

p_{i+k} is a linear function of p_i, the same for every i, so a distance can be learned as a matrix
(Vaswani et al. 2017, 3.5). Entered in the table of `positions.py`.
"""

import math
from typing import Any, ClassVar

import torch
from torch import Tensor

from regard.attention.linear import gaussian
from regard.attention.order import Positions
from regard.config.positions import BASE
from regard.errors import DataError

HELD = 2**24  # numbers of a table that is kept ready; what lies beyond it is computed when it is asked for


def sinusoids(length: int, width: int, offset: int = 0, base: float = BASE) -> Tensor:
    """The table (length, width) of sinusoids from place `offset` on: [sin | cos] halves.

    >>> sinusoids(1, 4).tolist()
    [[0.0, 0.0, 1.0, 1.0]]
    """
    return sinusoids_at(torch.arange(offset, offset + length, device="cpu"), width, base)


def sinusoids_at(places: Tensor, width: int, base: float = BASE) -> Tensor:
    """The sinusoids of whole numbers (...): (..., width)."""
    half = (width + 1) // 2
    rates = torch.exp(torch.arange(half, device=places.device) * (-math.log(base) * 2 / width))
    angles = places[..., None] * rates  # (..., half)
    return torch.cat([angles.sin(), angles.cos()], -1)[..., :width]


def rows_of(offset: Tensor, length: int) -> Tensor:
    """The places (B, T) of rows that begin at `offset` (B,); padding before the first has place 0."""
    return (offset[:, None] + torch.arange(length, device=offset.device)).clamp(min=0)


class Sinusoidal(Positions):
    """Sinusoids added to the embeddings; any length."""

    native = "added"

    def __init__(self, width: int, max_length: int, base: float = BASE) -> None:
        super().__init__()
        self.base = base
        table = sinusoids(min(max_length, HELD // width), width, base=base)
        self.register_buffer("table", table, persistent=False)

    def embed(self, x: Tensor, offset: int | Tensor = 0, places: Any = None) -> Tensor:
        table: Tensor = self.table  # type: ignore[assignment]
        if isinstance(offset, Tensor):
            return x + sinusoids_at(rows_of(offset, x.shape[1]), x.shape[2], self.base).to(x)
        end = offset + x.shape[1]
        if end > table.shape[0]:
            return x + sinusoids(x.shape[1], x.shape[2], offset, self.base).to(x)
        return x + table[offset:end]


class Learned(Positions):
    """A learned vector for each place up to `max_length`."""

    native = "added"
    matrices: ClassVar = {"table": 0}  # a vector a place

    def __init__(self, width: int, max_length: int) -> None:
        super().__init__()
        self.max_length = max_length
        self.table = gaussian(max_length, width)

    def embed(self, x: Tensor, offset: int | Tensor = 0, places: Any = None) -> Tensor:
        end = int(offset.max() if isinstance(offset, Tensor) else offset) + x.shape[1]
        if end > self.table.shape[0]:
            raise DataError(
                f"a sequence of {end} tokens is longer than the {self.table.shape[0]} learned positions;"
                " shorten it, or train with positions.kind=sinusoidal"
            )
        if isinstance(offset, Tensor):
            return x + self.table[rows_of(offset, x.shape[1])]
        return x + self.table[offset:end]
