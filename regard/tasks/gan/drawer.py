"""Drawings: noise in, pictures out; what `regard.load` makes of a folder, and what training shows of itself.

Drawing number i of a seed is always the same, however many are drawn beside it: its noise depends on the two
alone, and no norm of the generator looks at another picture. Before this file: `regard.models.sagan`; after
it: `regard draw`, the server.
"""

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from regard.errors import ModelError, UsageError, shown
from regard.foreign import loads
from regard.images.sheet import sheet
from regard.tasks.gan.pixels import Labels, Pixels, as_bytes
from regard.tasks.itself import ShowsItself

CLASSES = "classes.json"  # of a folder: the names that can be asked for
MOST = 10_000  # drawings of one call
TOGETHER = 64  # drawn side by side
ENDINGS = (".png", ".npz")
_LARGEST_SEED = 2**32


def noise_of(seed: int, first: int, count: int, width: int) -> Tensor:
    """The noise (N, width) of drawings from number `first` on."""
    rows = [np.random.default_rng([seed, first + i]).standard_normal(width, np.float32) for i in range(count)]
    return torch.from_numpy(np.stack(rows))


@torch.no_grad()
def paint(
    model: Any, labels: Labels | None, count: int, *, seed: int, first: int = 0, spread: float = 1.0
) -> Pixels:
    """Drawings (N, C, S, S) in bytes, from number `first` on, on the device of the model."""
    device = next(model.parameters()).device
    made = []
    for start in range(0, count, TOGETHER):
        some = min(TOGETHER, count - start)
        noise = spread * noise_of(seed, first + start, some, model.noise)
        asked = None if labels is None else torch.from_numpy(labels[start : start + some]).to(device)
        made.append(as_bytes(model.make(noise.to(device), asked)).cpu().numpy())
    return np.concatenate(made)


def in_turn(count: int, classes: int) -> Labels | None:
    """Every class in turn; None where there are none."""
    return np.arange(count, dtype=np.int64) % classes if classes else None


@dataclass(frozen=True)
class Drawings:
    """Pictures (N, C, S, S) in bytes, and the class of each, "" where there are none."""

    pictures: Pixels
    classes: Sequence[str]
    seed: int
    columns: int = 0  # of a sheet; 0: about square

    def sheet(self, *, columns: int = 0, enlarged: int = 1) -> bytes:
        """All of them as one PNG."""
        return sheet(self.pictures, columns or self.columns, enlarged=enlarged)

    def npz(self) -> bytes:
        """Arrays `images` (N, H, W, C) and `labels` (N,): what `regard train --task image` reads."""
        held = io.BytesIO()
        np.savez_compressed(held, images=self.pictures.transpose(0, 2, 3, 1), labels=np.array(self.classes))
        return held.getvalue()

    def save(self, path: str | PathLike[str]) -> None:
        """By the ending of the path: a sheet, or arrays."""
        path = Path(path)
        refuse_ending(path)
        path.write_bytes(self.npz() if path.suffix == ".npz" else self.sheet())


def refuse_ending(path: Path) -> None:
    """Refuse a path that does not say what is to be written."""
    if path.suffix not in ENDINGS:
        raise UsageError(f"{path} ends in {path.suffix or 'nothing'}; give one of {', '.join(ENDINGS)}")


class Drawer(ShowsItself):
    """A generator in use."""

    task = "gan"

    def __init__(self, model: nn.Module, names: Sequence[str]) -> None:
        self.model, self.names = model, tuple(names)

    @property
    def side(self) -> int:
        """Pixels of a picture's side."""
        held: Any = self.model
        return int(held.generator.sides[-1])

    @property
    def bytes(self) -> int:
        """Of a picture."""
        held: Any = self.model
        return self.side**2 * int(held.generator.out.out_channels)

    def rows(self, asked: Sequence[tuple[int, int, int | None]], *, spread: float = 1.0) -> Pixels:
        """One drawing (C, S, S) for each seed, number and class."""
        made = [
            paint(
                self.model,
                None if label is None else np.array([label], np.int64),
                1,
                seed=seed,
                first=number,
                spread=spread,
            )
            for seed, number, label in asked
        ]
        return np.concatenate(made)

    def number_of(self, label: str | None) -> int | None:
        """The class of that name; None where none is asked for."""
        if label is None:
            return None
        if not self.names:
            raise UsageError(f"this generator knows no classes, and {shown(label)} was asked for")
        if label not in self.names:
            there = ", ".join(shown(name, 20) for name in self.names[:20])
            more = f" and {len(self.names) - 20} more" if len(self.names) > 20 else ""
            raise UsageError(f"there is no class {shown(label)}; there are {there}{more}")
        return self.names.index(label)

    def draw(
        self, count: int = 64, label: str | None = None, *, seed: int = 1, spread: float = 1.0
    ) -> Drawings:
        """So many pictures of a class, or of every class in turn; `spread` is how far noise goes.

        Less spread gives likelier pictures that are more alike.
        """
        if not 1 <= count <= MOST:
            raise UsageError(f"n ({shown(count)}) must be between 1 and {MOST:,}")
        if not 0 <= seed < _LARGEST_SEED:
            raise UsageError(f"seed ({shown(seed)}) must be between 0 and {_LARGEST_SEED - 1}")
        if not 0 <= spread <= 10:
            raise UsageError(f"spread ({shown(spread)}) must be between 0 and 10")
        number = self.number_of(label)
        labels = in_turn(count, len(self.names)) if number is None else np.full(count, number, np.int64)
        pictures = paint(self.model, labels, count, seed=seed, spread=spread)
        classes = ["" if labels is None else self.names[each] for each in ([] if labels is None else labels)]
        columns = len(self.names) if number is None and 1 < len(self.names) <= count else 0
        return Drawings(pictures, classes or [""] * count, seed, columns)


def names_in(files: Mapping[str, bytes]) -> list[str]:
    """The classes of a folder."""
    try:
        names = loads(files[CLASSES])
    except (KeyError, ValueError) as error:
        raise ModelError(f"the folder has no whole {CLASSES}; copy it again") from error
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ModelError(f"{CLASSES} holds no names; copy the folder again")
    return names
