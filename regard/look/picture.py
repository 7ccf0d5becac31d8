"""What was attended on a picture: point at a place, an object or the whole, and see where each head looked.

A map says for each that looks how much it took of each that is looked at. Both are either the places of a
grid laid over the picture (patches, pixels of a map; the two grids may differ), or things with a name:
objects in boxes, the whole. Its forms: a page (`page/picture.js`), JSON, a figure. Made by `pictured.py` of
models that are shown a picture, by `drawn.py` of those that draw one.
"""

import base64
import io
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from torch import Tensor

from regard.errors import UsageError
from regard.look.document import as_json, rounded
from regard.look.html import notebook_frame, page
from regard.look.look import Origin, write

FORMAT, VERSION = "regard-picture-look", 2
OBJECTS, WHOLE = "objects", "the whole"
SHOWN = 9  # panels of a figure, beside the picture itself
IN_A_ROW = 5
Grid = tuple[int, int]  # rows and columns


@dataclass(frozen=True)
class PictureMap:
    """The weights (H, T, S) of one attention: T places or things look at S."""

    name: str
    weights: Tensor
    queries: Grid | str
    keys: Grid | str

    def __post_init__(self) -> None:
        for size, side in zip(self.weights.shape[1:], (self.queries, self.keys), strict=True):
            assert isinstance(side, str) or size == side[0] * side[1], (self.name, self.weights.shape, side)

    @property
    def kind(self) -> str:
        """The stack it belongs to: generator, discriminator, encoder, decoder, pool."""
        return self.name.partition(".")[0]

    def fits(self, kind: str, layer: int | None) -> bool:
        """Whether it is meant by a name, a stack or what is done (self, cross), and the number of a layer."""
        stack, number, how = (*self.name.split("."), "", "")[:3]
        right = kind in ("", self.name, stack, how) or (kind == "cross" and stack == "pool")
        return right and (layer is None or number == str(layer))


@dataclass(frozen=True)
class PictureLook:
    """One picture with the attention of every head on it."""

    pixels: npt.NDArray[np.uint8]  # (C, H, W), as it is shown
    maps: tuple[PictureMap, ...]
    text: str  # what was asked for, or which picture it was
    answer: str  # what came of it
    task: str
    origin: Origin = field(default_factory=Origin)
    off: Mapping[str, Collection[int]] = field(default_factory=dict)  # heads that were switched off
    objects: tuple[dict[str, Any], ...] = ()  # name, score and box (centre and size in shares) of each

    @property
    def grid(self) -> Grid:
        """Rows and columns of the places that are looked at."""
        return next(each.keys for each in self.maps if not isinstance(each.keys, str))

    def map(self, kind: str = "", layer: int | None = None) -> PictureMap:
        """The first map that is meant: by its name, its stack or what it does, and its layer."""
        for each in self.maps:
            if each.fits(kind, layer):
                return each
        there = ", ".join(each.name for each in self.maps)
        wanted = " ".join(filter(None, (kind, "" if layer is None else f"of layer {layer}")))
        raise UsageError(f"there is no map {wanted}; there are {there}")

    def to_dict(self, *, vectors: bool = True) -> dict[str, Any]:
        """Everything as plain values: what docs/look.md describes."""
        channels, height, width = self.pixels.shape
        return {
            "format": FORMAT,
            "version": VERSION,
            "model": {"name": self.origin.name, "card": self.origin.card},
            "task": self.task,
            "text": self.text,
            "answer": self.answer,
            "off": {name: sorted(heads) for name, heads in self.off.items()},
            "picture": {
                "height": height,
                "width": width,
                "channels": channels,
                "bytes": base64.b64encode(self.pixels.transpose(1, 2, 0).tobytes()).decode(),
            },
            "objects": list(self.objects),
            "maps": [
                {
                    "name": each.name,
                    "kind": each.kind,
                    "queries": _side(each.queries),
                    "keys": _side(each.keys),
                    "heads": [rounded(head, 4) for head in each.weights],
                }
                for each in self.maps
            ],
        }

    def to_json(self, *, vectors: bool = True) -> str:
        """`to_dict` as text."""
        return as_json(self.to_dict())

    def to_html(self) -> str:
        """A page in one file that needs no network."""
        return page(self.to_dict(), "picture.js")

    def figure(
        self, *, kind: str = "", layer: int | None = None, head: int | None = None, pieces: bool = False
    ) -> "PictureFigure":
        """Where things looked, or some places; the mean of the heads unless one is named.

        Without a kind or a layer it is what sums up all layers, if something does (rollout), or the first.
        """
        on_picture = [each for each in self.maps if not isinstance(each.keys, str)]
        things = [each for each in on_picture if isinstance(each.queries, str)]
        chosen = things or on_picture[:1]
        if kind or layer is not None:
            chosen = [each for each in on_picture if each.fits(kind, layer)]
        one = chosen[-1] if chosen else self.map(kind, layer)
        if isinstance(one.keys, str):
            raise UsageError(f"{one.name} does not look at the picture; the page and the JSON show it")
        if head is not None and not 0 <= head < len(one.weights):
            raise UsageError(f"{one.name} has heads 0 to {len(one.weights) - 1}, there is no head {head}")
        return PictureFigure(self, one, one.weights.mean(0) if head is None else one.weights[head])

    def save(self, path: str | PathLike[str]) -> None:
        """Write it by the ending of the path: .html, .json, .svg or .png."""
        write(Path(path), self)

    def _repr_html_(self) -> str:
        return notebook_frame(self.to_html(), f"Attention on a picture: {self.text}")


def _side(side: Grid | str) -> list[int] | str:
    return side if isinstance(side, str) else list(side)


@dataclass(frozen=True)
class PictureFigure:
    """The picture, then one panel a place or a thing: what it looked at."""

    seen: PictureLook
    one: PictureMap
    weights: Tensor  # (T, S)

    def places(self) -> list[int]:
        """Every thing; or the places that looked most sharply, apart from each other."""
        queries = self.one.queries
        if isinstance(queries, str):
            return list(range(min(SHOWN, len(self.weights))))
        entropy = -(self.weights * self.weights.clamp_min(1e-12).log()).sum(-1)
        columns, found = queries[1], list[int]()
        for place in entropy.argsort().tolist():
            row, column = divmod(place, columns)
            apart = max(queries) // 4
            if all(max(abs(row - o // columns), abs(column - o % columns)) >= apart for o in found):
                found.append(place)
        return sorted(found[:SHOWN])

    def to_png(self) -> bytes:
        """A PNG."""
        return self._drawn("png")

    def to_svg(self) -> str:
        """An SVG."""
        return self._drawn("svg").decode()

    def _drawn(self, form: str) -> bytes:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure

        places = self.places()
        columns = min(IN_A_ROW, 1 + len(places))
        rows = -(-(1 + len(places)) // columns)
        sheet = Figure(figsize=(2.1 * columns, 2.4 * rows), dpi=110, layout="constrained")
        FigureCanvasAgg(sheet)
        axes = sheet.subplots(rows, columns, squeeze=False).ravel()
        for each in axes:
            each.set_axis_off()
        self._show(axes[0])
        axes[0].set_title(self.seen.answer[:40] if self.seen.task != "gan" else self.one.name, fontsize=8)
        for each, place in zip(axes[1:], places, strict=False):
            self._panel(each, place)
        held = io.BytesIO()
        sheet.savefig(held, format=form, metadata={"Date": None} if form == "svg" else None)
        return held.getvalue()

    def _show(self, axes: Any) -> None:
        pixels = self.seen.pixels
        image = pixels.transpose(1, 2, 0) if len(pixels) == 3 else pixels[0]
        axes.imshow(image, cmap="gray", vmin=0, vmax=255, extent=(0, *reversed(image.shape[:2]), 0))

    def _panel(self, axes: Any, place: int) -> None:
        """The picture in grey, lit where one place or thing looked."""
        one, (height, width) = self.one, self.seen.pixels.shape[1:]
        area = (0, width, height, 0)
        assert not isinstance(one.keys, str)
        axes.imshow(self.seen.pixels.mean(0), cmap="gray", vmin=0, vmax=255, extent=area)
        seen = self.weights[place].reshape(one.keys).numpy()
        axes.imshow(seen, cmap="magma", alpha=0.65, extent=area)
        if isinstance(one.queries, str):
            told = self.seen.objects[place] if self.seen.objects else None
            axes.set_title(one.queries if told is None else f"{told['name']} {told['score']:.0%}", fontsize=8)
            return
        row, column = divmod(place, one.queries[1])
        across, down = width / one.queries[1], height / one.queries[0]
        axes.plot((column + 0.5) * across, (row + 0.5) * down, "+", color="#40e0ff", markersize=9)
        axes.set_title(f"row {row + 1}, column {column + 1}", fontsize=8)
