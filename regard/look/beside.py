"""`look_beside([model, other], "text")`: the same sentence by several models, side by side.

The lecture's two decoders, for instance: one writes word by word, the other all at once. As a page it is a
whole look into each; as a figure, one map of each beside the other. Before this file: `look.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any

from regard.errors import UsageError
from regard.look.document import as_json
from regard.look.figure import Cell, Figure, Label
from regard.look.html import notebook_frame, page
from regard.look.look import Look, look, write

FORMAT, VERSION = "regard-beside", 1
ENDINGS = (".html", ".json", ".png", ".svg")
SPACE = 32.0  # points between two figures
NAMED = 26.0  # points for the name above one


@dataclass(frozen=True)
class Beside:
    """One text, several looks."""

    looks: tuple[Look, ...]

    @property
    def text(self) -> str:
        """What they all were given."""
        return self.looks[0].text

    def to_dict(self) -> dict[str, Any]:
        """`text`, and the document of each look."""
        looks = [each.to_dict() for each in self.looks]
        return {"format": FORMAT, "version": VERSION, "text": self.text, "looks": looks}

    def to_json(self) -> str:
        """`to_dict` as text."""
        return as_json(self.to_dict())

    def to_html(self) -> str:
        """A page in one file that needs no network."""
        return page(self.to_dict(), "beside.js")

    def figure(self, **options: Any) -> Figure:
        """One map of each; the options are those of `Look.figure`."""
        made = [(each.origin.name, each.answer, each.figure(**options)) for each in self.looks]
        return _row([_titled(f"{name}: {answer}", drawn) for name, answer, drawn in made])

    def save(self, path: str | PathLike[str]) -> None:
        """Write it by the ending of the path: .html, .json, .svg or .png."""
        write(Path(path), self)

    def _repr_html_(self) -> str:
        return notebook_frame(self.to_html(), f"Side by side: {self.text}")


def look_beside(models: Sequence[Any], text: str, **options: Any) -> Beside:
    """What each model makes of `text`; each is a folder, or what `regard.load` made of one."""
    if len(models) < 2:
        raise UsageError(f"{len(models)} model given; side by side are two or more")
    looks = tuple(look(model, text, **options) for model in models)
    return Beside(looks)


def _titled(title: str, drawn: Figure) -> Figure:
    """A figure under its title."""
    moved = _moved(drawn, 0.0, NAMED)
    label = Label(8.0, NAMED / 2 + 4, title)
    return replace(moved, title=title, height=drawn.height + NAMED, labels=(label, *moved.labels))


def _moved(drawn: Figure, right: float, down: float) -> Figure:
    cells = tuple(replace(each, x=each.x + right, y=each.y + down) for each in drawn.cells)
    labels = tuple(replace(each, x=each.x + right, y=each.y + down) for each in drawn.labels)
    return replace(drawn, cells=cells, labels=labels)


def _row(figures: Sequence[Figure]) -> Figure:
    """Figures next to each other, from the left."""
    cells: list[Cell] = []
    labels: list[Label] = []
    at = 0.0
    for each in figures:
        moved = _moved(each, at, 0.0)
        cells += moved.cells
        labels += moved.labels
        at += max(each.width, 7.5 * len(each.title)) + SPACE
    height = max(each.height for each in figures)
    title = "; ".join(each.title for each in figures)
    return Figure(at - SPACE, height, title, tuple(cells), tuple(labels))


__all__ = ["ENDINGS", "Beside", "look_beside"]
