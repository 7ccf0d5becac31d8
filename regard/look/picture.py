"""What was attended on a picture: point at a place of it and see where each head looked.

A picture has places in rows and columns: pixels of a map, patches. A map says for each place that looks how
much it took of each place that is looked at; the two grids may differ. Its forms: a page (`page/picture.js`),
JSON, and a figure of the places whose look goes farthest. Made by `drawn.py`.
"""

import base64
import io
from collections.abc import Callable, Collection, Mapping
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

FORMAT, VERSION = "regard-picture-look", 1
ENDINGS = (".html", ".json", ".png", ".svg")
SHOWN = 6  # places of a figure
Grid = tuple[int, int]  # rows and columns


@dataclass(frozen=True)
class PictureMap:
    """The weights (H, T, S) of one attention, whose T places look at S."""

    name: str
    weights: Tensor
    queries: Grid
    keys: Grid

    def __post_init__(self) -> None:
        _, places, seen = self.weights.shape
        assert places == self.queries[0] * self.queries[1], (self.weights.shape, self.queries)
        assert seen == self.keys[0] * self.keys[1], (self.weights.shape, self.keys)

    @property
    def kind(self) -> str:
        """The stack it belongs to: generator, discriminator, encoder."""
        return self.name.partition(".")[0]


@dataclass(frozen=True)
class PictureLook:
    """One picture with the attention of every head on it."""

    pixels: npt.NDArray[np.uint8]  # (C, H, W)
    maps: tuple[PictureMap, ...]
    text: str  # what was asked for, or which picture it was
    answer: str  # what came of it
    task: str
    origin: Origin = field(default_factory=Origin)
    off: Mapping[str, Collection[int]] = field(default_factory=dict)  # heads that were switched off

    def map(self, kind: str = "", layer: int | None = None) -> PictureMap:
        """The first map of that kind and layer."""
        for each in self.maps:
            number = each.name.split(".")[1:2]
            if kind in ("", each.kind) and (layer is None or number == [str(layer)]):
                return each
        there = ", ".join(each.name for each in self.maps)
        raise UsageError(f"there is no map {kind} {'' if layer is None else layer}; there are {there}")

    def to_dict(self, *, vectors: bool = True) -> dict[str, Any]:
        """Everything as plain values: what docs/draw.md describes."""
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
            "maps": [
                {
                    "name": each.name,
                    "kind": each.kind,
                    "queries": list(each.queries),
                    "keys": list(each.keys),
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
        """Some places and where they looked; the mean of the heads unless one is named."""
        one = self.map(kind, layer)
        if head is not None and not 0 <= head < len(one.weights):
            raise UsageError(f"{one.name} has heads 0 to {len(one.weights) - 1}, there is no head {head}")
        return PictureFigure(self, one, one.weights.mean(0) if head is None else one.weights[head])

    def save(self, path: str | PathLike[str]) -> None:
        """Write it by the ending of the path: .html, .json, .svg or .png."""
        forms: dict[str, Callable[[], str | bytes]] = {
            ".html": self.to_html,
            ".json": lambda: self.to_json() + "\n",
            ".png": lambda: self.figure().to_png(),
            ".svg": lambda: self.figure().to_svg(),
        }
        write(Path(path), forms)

    def _repr_html_(self) -> str:
        return notebook_frame(self.to_html(), f"Attention on a picture: {self.text}")


@dataclass(frozen=True)
class PictureFigure:
    """A row of pictures: on each a place, and what it looked at."""

    seen: PictureLook
    one: PictureMap
    weights: Tensor  # (T, S)

    def places(self) -> list[int]:
        """The places that looked most sharply, apart from each other."""
        entropy = -(self.weights * self.weights.clamp_min(1e-12).log()).sum(-1)
        columns, found = self.one.queries[1], list[int]()
        for place in entropy.argsort().tolist():
            row, column = divmod(place, columns)
            apart = max(self.one.queries) // 4
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

        pixels, places = self.seen.pixels, self.places()
        height, width = pixels.shape[1:]
        sheet = Figure(figsize=(1.7 * (len(places) + 1), 2.1), dpi=120)
        FigureCanvasAgg(sheet)
        image = pixels.transpose(1, 2, 0) if len(pixels) == 3 else pixels[0]
        for number, axes in enumerate(sheet.subplots(1, len(places) + 1, squeeze=False)[0]):
            axes.imshow(image, cmap="gray", vmin=0, vmax=255, extent=(0, width, height, 0))
            axes.set_axis_off()
            if not number:
                axes.set_title(self.one.name, fontsize=8)
                continue
            row, column = divmod(places[number - 1], self.one.queries[1])
            seen = self.weights[places[number - 1]].reshape(self.one.keys).numpy()
            axes.imshow(seen, cmap="inferno", alpha=0.65, extent=(0, width, height, 0))
            down, across = height / self.one.queries[0], width / self.one.queries[1]
            axes.plot((column + 0.5) * across, (row + 0.5) * down, "+", color="#40e0ff", markersize=9)
            axes.set_title(f"row {row + 1}, column {column + 1}", fontsize=8)
        held = io.BytesIO()
        sheet.savefig(held, format=form, metadata={"Date": None} if form == "svg" else None)
        return held.getvalue()
