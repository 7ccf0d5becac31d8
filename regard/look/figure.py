"""A clean figure for a paper: one map with its words, as SVG or PNG.

A figure is a list of cells and labels with their places; the two forms draw the same list. Before this file:
`look.py`.
"""

import io
import re
import unicodedata
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

import torch
from torch import Tensor

from regard.errors import UsageError
from regard.look.align import sharpest
from regard.look.words import SILENT
from regard.text.normalise import SPACE_MARK

if TYPE_CHECKING:
    from regard.look.look import Look

ALIGNMENT = "alignment"  # the kind of a figure that shows which place says which token
CELL, FONT, GAP = 24.0, 13.0, 8.0  # in points of the SVG
INK, MUTED = "#1c2430", "#6b7686"
# From nothing to everything; even steps of lightness, so that it also reads in grey.
SHADES = ((246, 248, 251), (196, 217, 238), (124, 172, 217), (58, 121, 184), (24, 66, 122), (9, 34, 74))
FAMILY = "Inter, 'Helvetica Neue', Arial, 'Noto Sans', sans-serif"
_NOT_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass(frozen=True)
class Cell:
    """A filled square."""

    x: float
    y: float
    width: float
    height: float
    colour: str


@dataclass(frozen=True)
class Label:
    """A text that begins (start) or ends (end) at a point, turned up by an angle."""

    x: float
    y: float
    text: str
    anchor: str = "start"
    angle: float = 0.0
    size: float = FONT
    colour: str = INK


@dataclass(frozen=True)
class Figure:
    """Cells and labels on a white sheet."""

    width: float
    height: float
    title: str
    cells: tuple[Cell, ...]
    labels: tuple[Label, ...]

    def to_svg(self) -> str:
        """The figure as the text of an SVG file."""
        size = f"{self.width:.0f} {self.height:.0f}"
        lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size}" width="{self.width:.0f}" '
            f'height="{self.height:.0f}" role="img" font-family="{FAMILY}">',
            f"<title>{_xml(self.title)}</title>",
            '<rect width="100%" height="100%" fill="#ffffff"/>',
        ]
        lines += [
            f'<rect x="{c.x:g}" y="{c.y:g}" width="{c.width:g}" height="{c.height:g}" fill="{c.colour}"/>'
            for c in self.cells
        ]
        lines += [
            f'<text transform="translate({t.x:g} {t.y:g}) rotate({-t.angle:.0f})" text-anchor="{t.anchor}" '
            f'dominant-baseline="central" font-size="{t.size:g}" fill="{t.colour}">{_xml(t.text)}</text>'
            for t in self.labels
        ]
        return "\n".join([*lines, "</svg>", ""])

    def to_png(self, dpi: int = 200) -> bytes:
        """The figure as a PNG file."""
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure as Sheet
        from matplotlib.patches import Rectangle

        sheet = Sheet(figsize=(self.width / 72, self.height / 72), dpi=dpi)
        FigureCanvasAgg(sheet)
        axes = sheet.add_axes((0, 0, 1, 1), xlim=(0, self.width), ylim=(self.height, 0))
        axes.axis("off")
        for c in self.cells:
            axes.add_patch(Rectangle((c.x, c.y), c.width, c.height, facecolor=c.colour, linewidth=0))
        for t in self.labels:
            axes.text(
                t.x,
                t.y,
                _NOT_XML.sub("\ufffd", t.text),
                ha={"start": "left", "end": "right", "middle": "center"}[t.anchor],
                va="center_baseline" if not t.angle else "center",
                rotation=t.angle,
                rotation_mode="anchor",
                fontsize=t.size * 0.95,
                color=t.colour,
                parse_math=False,
            )
        made = io.BytesIO()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a glyph that no font here has becomes a box
            sheet.savefig(made, format="png", facecolor="white")
        return made.getvalue()


def figure(seen: "Look", *, kind: str, layer: int | None, head: int | None, pieces: bool) -> Figure:
    """One map of a look; what is not told is chosen: cross, its sharpest layer, the mean of the heads."""
    if kind == ALIGNMENT:
        return lattice(seen)
    kinds = {each.kind for each in seen.maps}
    kind = kind or ("cross" if "cross" in kinds else seen.maps[-1].kind)
    if layer is None:
        layer = sharpest(seen) if kind == "cross" else max(m.layer for m in seen.maps if m.kind == kind)
    one = seen.map(kind, layer)
    heads = len(one.weights)
    if head is not None and not 0 <= head < heads:
        raise UsageError(f"{one.name} has heads 0 to {heads - 1}, there is no head {head}")
    queries, keys = (seen.side(name) for name in one.sides)
    if pieces or one.weights.shape[-1] != len(keys.tokens):
        table = one.weights
        rows, columns = [_plain(t) for t in queries.tokens], [_plain(t) for t in keys.tokens]
    else:
        table = seen.joined(one)
        rows, columns = [word.text for word in queries.words], [word.text for word in keys.words]
    if table.shape[-1] != len(columns):  # keys that are no places of the sentence
        columns = [str(i + 1) for i in range(table.shape[-1])]
    which = f"mean of {heads} heads" if head is None else f"head {head}"
    weights = table.mean(0) if head is None else table[head]
    return heat_map(weights, rows, columns, f"{one.name}, {which}")


def lattice(seen: "Look") -> Figure:
    """CTC's alignment: places from left to right under their piece of the source, the tokens they say below.

    A cell is as dark as the place is sure of what it says; a place that says nothing has none.
    """
    if "places" not in seen.sides:
        raise UsageError(f"{seen.origin.name} has no alignment of places; model.kind=ctc has one")
    said, source = seen.passes[-1], [_plain(token) for token in seen.source.tokens]
    rows: list[tuple[str, dict[int, float]]] = []
    for place, token in enumerate(said.tokens):
        if token == SILENT:
            continue
        if not place or said.tokens[place - 1] != token:
            rows.append((_plain(token), {}))
        rows[-1][1][place] = said.confidence[place]
    count = len(said.tokens)
    columns = [source[place * len(source) // count] for place in range(count)]
    weights = torch.tensor([[sure.get(place, 0.0) for place in range(count)] for _, sure in rows])
    caption = f"{count} places, {len(rows)} tokens: which place says which"
    return heat_map(weights, [token for token, _ in rows], columns, caption)


def heat_map(weights: Tensor, rows: Sequence[str], columns: Sequence[str], caption: str) -> Figure:
    """weights (rows, columns) from 0 to 1 as shaded squares, with words at the edges."""
    left = GAP * 2 + max(map(_width, rows), default=0)
    top = GAP * 2 + max(map(_width, columns), default=0) * 0.71 + FONT / 2
    right = left + CELL * len(columns)
    bottom = top + CELL * len(rows)
    values = weights.tolist()
    cells = [
        Cell(left + CELL * j + 0.5, top + CELL * i + 0.5, CELL - 1, CELL - 1, shade(value))
        for i, row in enumerate(values)
        for j, value in enumerate(row)
    ]
    labels = [
        Label(left - GAP, top + CELL * (i + 0.5), word, anchor="end") for i, word in enumerate(rows)
    ] + [Label(left + CELL * (j + 0.5), top - GAP, word, angle=45) for j, word in enumerate(columns)]
    legend = [Cell(left + i * 4, bottom + 2 * GAP, 4, 6, shade(i / 19)) for i in range(20)]
    low = bottom + 2 * GAP + 3
    labels += [
        Label(left - 6, low, "0", anchor="end", size=10, colour=MUTED),
        Label(left + 86, low, "1", size=10, colour=MUTED),
        Label(left, low + 2 * GAP, caption, size=10, colour=MUTED),
    ]
    last = max(map(_width, columns), default=0) * 0.71
    width = max(right + last, left + _width(caption) * 10 / FONT) + GAP
    return Figure(width, low + 4 * GAP, caption, (*cells, *legend), tuple(labels))


def shade(value: float) -> str:
    """The colour of a weight from 0 to 1.

    >>> shade(0.0), shade(1.0)
    ('#f6f8fb', '#09224a')
    """
    place = min(max(value, 0.0), 1.0) * (len(SHADES) - 1)
    low = min(int(place), len(SHADES) - 2)
    mixed = [a + (b - a) * (place - low) for a, b in zip(SHADES[low], SHADES[low + 1], strict=True)]
    return "#" + "".join(f"{round(part):02x}" for part in mixed)


def _width(text: str) -> float:
    """About how wide a text is; letters of East Asia are twice as wide."""
    wide = sum(1.0 if unicodedata.east_asian_width(each) in "WF" else 0.56 for each in text)
    return min(wide, 40.0) * FONT


def _plain(token: str) -> str:
    return token.replace(SPACE_MARK, "") or SPACE_MARK


def _xml(text: str) -> str:
    """Text that an XML reader takes as text."""
    return escape(_NOT_XML.sub("\ufffd", text))
