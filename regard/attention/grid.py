"""Places in two dimensions: the patches of a picture, row by row, and how each kind of position knows them.

    sinusoidal  half of the numbers by the row, half by the column, added
    learned     a vector a place, added
    rotary      half of the planes turned by the row, half by the column
    relative    a number for each head and offset, on the scores
    quadratic   -α|δ - Δ|² on the scores, an offset Δ a head (`quadratic.py`)
    none        nothing

The words are those of `positions.kind`; what they do on a line is in `positions.py`. Dosovitskiy et al. 2021,
appendix D.4, compares them; relative offsets as in Liu et al. 2021 (Swin).
"""

import math
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

import torch
from torch import Tensor, nn

from regard.attention.absolute import Learned, sinusoids
from regard.attention.order import Positions
from regard.attention.quadratic import Quadratic
from regard.attention.rotary import Rotary
from regard.errors import UsageError

_SLOWEST = 10_000.0  # how much slower the last wave turns


class Grid(NamedTuple):
    """The rows and columns of places; one after the other, row by row."""

    rows: int
    columns: int

    @property
    def places(self) -> int:
        """How many there are."""
        return self.rows * self.columns

    def of(self, by_row: Tensor, by_column: Tensor) -> Tensor:
        """What is known of rows (R, A) and of columns (C, B), joined for every place: (R·C, A + B)."""
        down = by_row[:, None].expand(-1, self.columns, -1)
        across = by_column[None].expand(self.rows, -1, -1)
        return torch.cat([down, across], -1).flatten(0, 1)


class GridSinusoidal(Positions):
    """Sinusoids of the row, then those of the column, added to the embeddings."""

    def __init__(self, width: int, grid: Grid) -> None:
        super().__init__()
        down, across = width - width // 2, width // 2
        table = grid.of(sinusoids(grid.rows, down), sinusoids(grid.columns, across))
        self.register_buffer("table", table, persistent=False)

    def embed(self, x: Tensor, offset: int | Tensor = 0, places: Any = None) -> Tensor:
        table: Tensor = self.table  # type: ignore[assignment]
        return x + table.to(x.dtype)


class GridAdded(Positions):
    """Sines and cosines of the row, then of the column, added where a place looks or is looked at.

    Not where it is taken (Carion et al. 2020). A side is one turn, however many places it has, and waves and
    their other halves take turns. `places` takes the place of the table: vectors (T, D) of what is no patch.
    """

    def __init__(self, width: int, grid: Grid) -> None:
        super().__init__()
        half = width // 2
        number = torch.arange(half, device="cpu")
        rate = _SLOWEST ** (2 * (number // 2) / half)

        def waves(length: int) -> Tensor:
            angle = (
                torch.arange(1, length + 1, device="cpu")[:, None] * (math.tau / length) / rate
            )  # (L, D/2)
            return torch.where(number % 2 == 0, angle.sin(), angle.cos())

        self.register_buffer("table", grid.of(waves(grid.rows), waves(grid.columns)), persistent=False)

    def add(self, x: Tensor, offset: int = 0, places: Any = None) -> Tensor:
        own: Tensor = self.table  # type: ignore[assignment]
        table: Tensor = own if places is None else places
        return table.to(x.dtype)


class GridRotary(Rotary):
    """Queries and keys turned: half of a head's planes by the row, half by the column."""

    def __init__(self, d_head: int, grid: Grid) -> None:
        super().__init__(d_head, grid.places)
        down = d_head // 4 * 2 + (2 if d_head % 4 else 0)  # numbers of the planes that rows turn
        rows, columns = sinusoids(grid.rows, down), sinusoids(grid.columns, d_head - down)
        sines = grid.of(rows[:, : down // 2], columns[:, : (d_head - down) // 2])  # (T, K/2)
        cosines = grid.of(rows[:, down // 2 :], columns[:, (d_head - down) // 2 :])
        self.register_buffer("table", torch.cat([sines, cosines], -1), persistent=False)


class GridRelative(Positions):
    """A learned number for each head and each offset between two places, added to the scores."""

    matrices: ClassVar = {"table": 0}

    def __init__(self, n_heads: int, grid: Grid) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.zeros((2 * grid.rows - 1) * (2 * grid.columns - 1), n_heads))
        down, across = (torch.arange(length, device="cpu") for length in grid)
        place = torch.cartesian_prod(down, across)  # (T, 2)
        offset = place[None] - place[:, None]  # (T, T, 2)
        index = (offset[..., 0] + grid.rows - 1) * (2 * grid.columns - 1) + offset[..., 1] + grid.columns - 1
        self.register_buffer("index", index, persistent=False)

    def bias(self, q: Tensor, keys: int, offset: int = 0, places: Any = None) -> Tensor:
        index: Tensor = self.index  # type: ignore[assignment]
        return self.table[index].permute(2, 0, 1)[None].to(q.dtype)  # (1, H, T, T)


_ADDED: dict[str, Callable[[int, Grid], Positions]] = {
    "sinusoidal": GridSinusoidal,
    "learned": lambda width, grid: Learned(width, grid.places),
}
_INSIDE: dict[str, Callable[[int, int, Grid], Positions]] = {
    "rotary": lambda n_heads, d_head, grid: GridRotary(d_head, grid),
    "relative": lambda n_heads, d_head, grid: GridRelative(n_heads, grid),
    "quadratic": lambda n_heads, d_head, grid: Quadratic(n_heads, grid),
}
ON_GRID = (*_ADDED, *_INSIDE, "none")


def grid_positions(kind: str, width: int, grid: Grid) -> Positions:
    """What the kind does to the embeddings of patches."""
    if kind not in ON_GRID:
        raise UsageError(f"positions.kind={kind} knows a line, not a picture; take {', '.join(ON_GRID)}")
    return _ADDED[kind](width, grid) if kind in _ADDED else Positions()


def grid_relations(kind: str, n_heads: int, d_head: int, grid: Grid) -> Positions:
    """What the kind does inside the attention of patches."""
    return _INSIDE[kind](n_heads, d_head, grid) if kind in _INSIDE else Positions()
