"""A quadratic of the distance on the scores: each head looks around an offset of its own.

    score_ij -= α |p_j - p_i - Δ|²       Δ and α are learned, a pair a head

A large α holds a head at one place, a small one lets it see all: the theorem's heads (`convolution.py`) are
those of α → ∞. On a line of places, or on a grid of them (Cordonnier et al. 2020, section 3).
"""

from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from regard.attention.linear import gaussian
from regard.attention.order import Positions
from regard.errors import UsageError

WIDE = 0.1  # α of heads that begin anywhere: neighbours three places away still weigh a half
NEAR = 1.5  # α of heads that begin as a convolution: nine tenths of the weight on their own row and column
_HALF = 0.5  # of a place
SPREAD = 1.5  # how far from their query heads begin to look, where nothing says it


class Quadratic(Positions):
    """H heads with a centre (H, A) and a sharpness (H,) each; A is 1 on a line and 2 on a grid."""

    matrices: ClassVar = {"centres": 0}

    def __init__(self, n_heads: int, grid: tuple[int, int] | None = None) -> None:
        super().__init__()
        self.grid = grid
        self.centres = gaussian(n_heads, 1 if grid is None else 2, scale=SPREAD)
        self.log_sharpness = nn.Parameter(torch.full((n_heads,), WIDE).log())

    def bias(self, q: Tensor, keys: int, offset: int = 0, places: Any = None) -> Tensor:
        if self.grid is None:
            axes = [self._axis(0, torch.arange(offset, offset + q.shape[-2]), torch.arange(keys))]
        else:
            axes = [
                self._axis(n, torch.arange(length), torch.arange(length))
                for n, length in enumerate(self.grid)
            ]
        distance = axes[0]  # (H, T, S)
        if len(axes) == 2:
            down, across = axes[0][:, :, None, :, None], axes[1][:, None, :, None, :]
            distance = (down + across).flatten(3).flatten(1, 2)  # (H, R·C, R·C)
        scores: Tensor = -self.log_sharpness.exp()[:, None, None] * distance
        return scores[None].to(q.dtype)

    def _axis(self, axis: int, queries: Tensor, keys: Tensor) -> Tensor:
        """(δ - Δ)² along one axis: (H, queries, keys)."""
        steps = (keys[None] - queries[:, None]).to(self.centres)
        return (steps - self.centres[:, axis, None, None]).square()

    @torch.no_grad()
    def begin_as_convolution(self) -> None:
        """One head for each place under a K×K kernel."""
        self.centres.copy_(self.kernel_places())
        self.log_sharpness.fill_(torch.tensor(NEAR).log())

    def kernel_places(self) -> Tensor:
        """The offsets (H, 2) of a K×K kernel, a head a place."""
        heads = len(self.centres)
        side = round(heads**0.5)
        if side * side != heads or side % 2 == 0 or self.centres.shape[1] != 2:
            raise UsageError(f"heads that begin as a convolution must be 9, 25 or 49 on a grid, not {heads}")
        reach = torch.arange(side) - side // 2
        return torch.cartesian_prod(reach, reach).to(self.centres)

    @torch.no_grad()
    def stayed(self) -> Tensor:
        """Which heads are still within half a place of where a convolution has them: (H,)."""
        away: Tensor = self.centres - self.kernel_places()
        return away.square().sum(1) < _HALF**2


class BoxQuadratic(Positions):
    """A quadratic around each query's box: a head looks at a point of the box, as widely as the box is large.

        score_ij -= α |(p_j - c_i) / (s_i / 2) - Δ|²        c_i, s_i: centre and size of the box of query i

    `places` are the boxes (B, Q, 4), centre and size as shares of the picture's sides; keys are the places of
    the grid. Gao et al. 2021 (SMCA) has such a prior; with it a query need not learn where its box is.
    """

    matrices: ClassVar = {"centres": 0}

    def __init__(self, n_heads: int, grid: tuple[int, int]) -> None:
        super().__init__()
        angle = torch.arange(n_heads, device="cpu") * (2 * torch.pi / max(1, n_heads))
        self.centres = nn.Parameter(torch.stack([angle.cos(), angle.sin()], 1) * 0.5)  # around the middle
        self.log_sharpness = nn.Parameter(torch.zeros(n_heads))
        across, down = ((torch.arange(length, device="cpu") + 0.5) / length for length in reversed(grid))
        self.register_buffer("across", across, persistent=False)
        self.register_buffer("down", down, persistent=False)

    def bias(self, q: Tensor, keys: int, offset: int = 0, places: Any = None) -> Tensor:
        boxes: Tensor = places
        half = boxes[..., 2:].clamp(min=0.02) / 2  # (B, Q, 2)
        axes = []
        grid: tuple[Tensor, Tensor] = (self.across, self.down)  # type: ignore[assignment]
        for axis, ticks in enumerate(grid):
            step = (ticks - boxes[..., axis, None]) / half[..., axis, None]  # (B, Q, ticks)
            axes.append((step[:, None] - self.centres[:, axis, None, None]).square())  # (B, H, Q, ticks)
        distance = (axes[1][..., :, None] + axes[0][..., None, :]).flatten(3)  # (B, H, Q, rows·columns)
        return (-self.log_sharpness.exp()[:, None, None] * distance).to(q.dtype)
