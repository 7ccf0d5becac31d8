"""How a model knows order, one config word each (`positions.kind`); attention alone ignores it.

    sinusoidal  sin and cos of geometric frequencies, laid out as [sin | cos] halves;
                p_{i+k} is a linear function of p_i (Vaswani et al. 2017, 3.5)
    learned     one vector a place; cannot go past its length
    none        nothing

A scheme can act in four places: on the embeddings (`embed`), on queries and keys (`turn`), on the scores
(`bias`), and on what is gathered from the values (`gather`).
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from regard.errors import DataError


class Positions(nn.Module):
    """Base of all schemes; does nothing, which is the scheme `none`."""

    max_length: int | None = None  # longest sequence; None: any
    needs_weights = False  # whether `gather` has something to say; the readable path computes then

    def embed(self, x: Tensor, offset: int = 0) -> Tensor:
        """Embeddings (B, T, D) of the places from `offset` on, with their positions."""
        return x

    def turn(self, x: Tensor, offset: int = 0) -> Tensor:
        """Queries or keys (B, H, T, K) of the places from `offset` on, with their positions."""
        return x

    def bias(self, q: Tensor, keys: int, offset: int = 0) -> Tensor | None:
        """What is added to the scores of q (B, H, T, K), whose first place is `offset`, with S keys."""
        return None

    def gather(self, weights: Tensor, offset: int = 0) -> Tensor | None:
        """What is added to the output (B, H, T, K) for weights (B, H, T, S); `offset` as in `bias`."""
        return None


def sinusoids(length: int, width: int, offset: int = 0) -> Tensor:
    """The table (length, width) of sinusoids from place `offset` on: [sin | cos] halves.

    >>> sinusoids(1, 4).tolist()
    [[0.0, 0.0, 1.0, 1.0]]
    """
    half = (width + 1) // 2
    rates = torch.exp(torch.arange(half) * (-math.log(10000.0) * 2 / width))
    angles = torch.arange(offset, offset + length)[:, None] * rates  # (length, half)
    return torch.cat([angles.sin(), angles.cos()], 1)[:, :width]


class Sinusoidal(Positions):
    """Sinusoids added to the embeddings; any length."""

    def __init__(self, width: int, max_length: int) -> None:
        super().__init__()
        self.register_buffer("table", sinusoids(max_length, width), persistent=False)

    def embed(self, x: Tensor, offset: int = 0) -> Tensor:
        table: Tensor = self.table  # type: ignore[assignment]
        end = offset + x.shape[1]
        if end > table.shape[0]:
            return x + sinusoids(x.shape[1], x.shape[2], offset).to(x)
        return x + table[offset:end]


class Learned(Positions):
    """A learned vector for each place up to `max_length`."""

    def __init__(self, width: int, max_length: int) -> None:
        super().__init__()
        self.max_length = max_length
        self.table = nn.Parameter(torch.randn(max_length, width) * width**-0.5)

    def embed(self, x: Tensor, offset: int = 0) -> Tensor:
        end = offset + x.shape[1]
        if end > self.table.shape[0]:
            raise DataError(
                f"a sequence of {end} tokens is longer than the {self.table.shape[0]} learned positions;"
                " shorten it, or train with positions.kind=sinusoidal"
            )
        return x + self.table[offset:end]


POSITIONS: dict[str, Callable[[int, int], Positions]] = {
    "sinusoidal": Sinusoidal,
    "learned": Learned,
    "none": lambda width, max_length: Positions(),
}


def build_positions(kind: str, width: int, max_length: int) -> Positions:
    """The scheme of that name for embeddings of `width`."""
    return POSITIONS[kind](width, max_length)
