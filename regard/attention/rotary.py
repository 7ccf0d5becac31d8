"""Rotary positions: queries and keys are turned by an angle that grows with their place (Su et al. 2021).

Two halves of a head make K/2 planes; place i turns plane m by i ω_m, ω_m = 10000^(-2m/K). A turned product
depends on the distance alone: (R_i q)·(R_j k) = q·R_{j-i} k. Nothing is added to the embeddings, any length
has its angles. Used by `heads.py` on queries and keys.
"""

from typing import Any

import torch
from torch import Tensor

from regard.attention.absolute import sinusoids
from regard.attention.order import Positions
from regard.errors import UsageError
from regard.fused import turn as fused

MOST_PLACES, HELD = 8192, 2**18  # places and numbers of the table that each layer keeps ready


class Rotary(Positions):
    """Turns queries and keys of `d_head` dimensions; the angles of `max_length` places are kept ready."""

    native = "turned"

    def __init__(self, d_head: int, max_length: int) -> None:
        super().__init__()
        if d_head % 2:
            raise UsageError(
                f"rotary positions turn pairs of dimensions, so the head width d_model / n_heads ({d_head}) "
                "must be even"
            )
        length = min(max_length, MOST_PLACES, HELD // d_head)
        self.register_buffer("table", sinusoids(length, d_head), persistent=False)

    def turn(self, x: Tensor, offset: int = 0, places: Any = None) -> Tensor:
        table: Tensor = self.table  # type: ignore[assignment]
        end = offset + x.shape[-2]
        if end > table.shape[0]:
            angles = sinusoids(x.shape[-2], x.shape[-1], offset).to(table)
        else:
            angles = table[offset:end]
        if torch.is_grad_enabled() and x.requires_grad and fused.fits(x):
            return fused.turn(x, angles)
        sin, cos = angles.to(x.dtype).chunk(2, -1)  # (T, K/2) each
        left, right = x.chunk(2, -1)
        return torch.cat([left * cos - right * sin, right * cos + left * sin], -1)
