"""Pictures varied while a model learns, on whole batches: moved, turned, scaled, mirrored, a part covered.

Drawn from torch's own generator, whose state a checkpoint holds: a run that is killed goes on bit for bit.
Whether a mirrored picture is still the same thing depends on the pictures: `mirror_is_right` tries it out.
"""

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

SHIFT = 0.125  # of the side, either way
TURN = 10.0  # degrees, either way
SCALE = 0.1  # either way
COVER = 0.35  # of the side, at most, of the square that is covered
_SMALL, _TRIED = 8, 4000  # side of the pictures that mirroring is tried on, and how many
_RIDGE = 3.0
_TOLD = 0.02  # above chance, from which on the classifier has something to say


def augmented(pixels: Tensor, strength: float, *, flip: bool) -> Tensor:
    """Pictures (B, C, H, W), normalised so that 0 is their mean, each varied by itself."""
    if strength > 0:
        pixels = _covered(_moved(pixels, strength), strength)
    if flip:
        turned = torch.rand(len(pixels)).to(pixels.device) < 0.5
        pixels = torch.where(turned[:, None, None, None], pixels.flip(3), pixels)
    return pixels


def _moved(pixels: Tensor, strength: float) -> Tensor:
    """Shifted, turned and scaled in one step; what comes in from outside is the edge, drawn out."""
    count = len(pixels)
    random = torch.rand(4, count) * 2 - 1  # (4, B)
    angle = random[0] * (TURN * strength * torch.pi / 180)
    scale = 1 + random[1] * SCALE * strength
    shift = random[2:] * (2 * SHIFT * strength)  # the picture reaches from -1 to 1
    aspect = pixels.shape[2] / pixels.shape[3]
    cos, sin = angle.cos() * scale, angle.sin() * scale
    rows = torch.stack([cos, -sin * aspect, shift[0], sin / aspect, cos, shift[1]], 1).view(count, 2, 3)
    grid = F.affine_grid(rows.to(pixels), list(pixels.shape), align_corners=False)
    return F.grid_sample(pixels, grid, padding_mode="border", align_corners=False)


def _covered(pixels: Tensor, strength: float) -> Tensor:
    """A square at a random place set to the mean (cutout: DeVries & Taylor 2017)."""
    count, _, height, width = pixels.shape
    random = torch.rand(3, count, 1)
    sides = random[0] * min(1.0, COVER * strength)  # (B, 1), of the picture's side

    def inside(length: int, centre: Tensor) -> Tensor:
        return ((torch.arange(length) + 0.5) / length - centre).abs() < sides / 2  # (B, length)

    square = inside(height, random[1])[:, :, None] & inside(width, random[2])[:, None]  # (B, H, W)
    return pixels.masked_fill(square[:, None].to(pixels.device), 0.0)


def mirror_is_right(pictures: npt.NDArray[np.uint8], labels: npt.NDArray[np.integer]) -> bool:
    """Whether mirrored pictures (N, C, H, W) are as much of their class as they are themselves.

    A linear classifier of small copies learns from half of them and judges the others, as they are and
    mirrored: a mirrored photograph is told as well as before, a mirrored digit is not.
    """
    some = np.linspace(0, len(pictures) - 1, min(_TRIED, len(pictures))).astype(int)
    small = F.interpolate(
        torch.from_numpy(np.array(pictures[some])).float() / 255, size=(_SMALL, _SMALL), mode="area"
    )
    names = torch.from_numpy(np.asarray(labels[some], np.int64))
    learn, judge = slice(0, None, 2), slice(1, None, 2)
    flat = torch.cat([small.flatten(1), torch.ones(len(some), 1)], 1).double()  # (N, F + 1)
    wanted = F.one_hot(names.clamp(min=0)).double()
    square = flat[learn].mT @ flat[learn] + _RIDGE * torch.eye(flat.shape[1], dtype=torch.float64)
    weights = torch.linalg.solve(square, flat[learn].mT @ wanted[learn])
    mirrored = torch.cat([small.flip(3).flatten(1), torch.ones(len(some), 1)], 1).double()

    def right(held: Tensor) -> float:
        return float(((held[judge] @ weights).argmax(1) == names[judge]).double().mean())

    chance = float(names.bincount().max() / len(names))
    gained = right(flat) - chance
    if gained < _TOLD:  # too hard to say: photographs have colour, and signs seldom do
        return bool(pictures.shape[1] == 3)
    return right(mirrored) - chance >= 0.8 * gained
