"""What a model looked at in a picture: for every patch, object or the whole, where each head looked.

Maps are (H, queries, keys); keys are the patches of the grid, or the objects themselves. `rollout` follows
the looking through all layers at once (Abnar & Zuidema 2020): the product of (A + 1) / 2 of the encoder's
layers, A the mean of a layer's heads. Shown on the picture: a page (`page/scene.js`), a figure, data.
"""

import base64
import io
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from regard.attention.record import Tape, record
from regard.attention.switch import heads_off
from regard.errors import DataError, ModelError, UsageError
from regard.images.picture import Fit, open_picture, pixels
from regard.look.document import as_json
from regard.look.html import page
from regard.look.look import MOST_NUMBERS, Origin, opened, write
from regard.tasks.task import load

SIDE = 384  # pixels of the longer side of the picture that is shown
_NAMES = {"encoder": "patches", "pool": "the whole", "decoder": "objects"}


@dataclass(frozen=True)
class SceneMap:
    """The weights (H, queries, keys) of one attention; `keys` says of what: patches or objects."""

    name: str
    queries: str
    keys: str
    weights: Tensor


@dataclass(frozen=True)
class SceneFigure:
    """One map drawn on the picture, a panel a query."""

    look: "SceneLook"
    weights: Tensor  # (queries, rows·columns)
    titles: tuple[str, ...]

    def to_png(self) -> bytes:
        """As a PNG."""
        from matplotlib.figure import Figure

        columns = min(5, 1 + len(self.titles))
        rows = -(-(1 + len(self.titles)) // columns)
        sheet = Figure(figsize=(2.4 * columns, 2.6 * rows), layout="constrained")
        axes = np.atleast_1d(sheet.subplots(rows, columns, squeeze=False)).ravel()
        for one in axes:
            one.axis("off")
        image = self.look.image.transpose(1, 2, 0)
        height, width = image.shape[:2]
        axes[0].imshow(image)
        axes[0].set_title(self.look.answer[:40], fontsize=9)
        for one, heat, title in zip(axes[1:], self.weights, self.titles, strict=False):
            one.imshow(image.mean(-1), cmap="gray", extent=(0, width, height, 0))
            seen = heat.view(*self.look.grid).numpy()
            one.imshow(seen, cmap="magma", alpha=0.65, extent=(0, width, height, 0), interpolation="bilinear")
            one.set_title(title, fontsize=9)
        held = io.BytesIO()
        sheet.savefig(held, format="png", dpi=100)
        return held.getvalue()

    def to_svg(self) -> str:
        """A picture is no drawing."""
        raise UsageError("a look at a picture is written as .html, .png or .json")


@dataclass(frozen=True)
class SceneLook:
    """A picture, what was said of it, and the attention of every layer and head."""

    text: str  # where the picture lies
    answer: str
    image: npt.NDArray[np.uint8]  # (3, H, W), as it is shown
    grid: tuple[int, int]
    maps: tuple[SceneMap, ...]
    objects: tuple[
        dict[str, Any], ...
    ] = ()  # name, score and box (shares of the sides) of each that is shown
    task: str = "image"
    origin: Origin = field(default_factory=Origin)
    off: Mapping[str, Collection[int]] = field(default_factory=dict)

    def map(self, name: str) -> SceneMap:
        """The map of that name: encoder.0.self, pool.0.cross, decoder.2.cross, rollout."""
        for one in self.maps:
            if one.name == name:
                return one
        raise UsageError(f"there is no map {name}; there are {', '.join(one.name for one in self.maps)}")

    def figure(
        self, *, kind: str = "", layer: int | None = None, head: int | None = None, pieces: bool = False
    ) -> SceneFigure:
        """Where the whole, or each object, looked: rollout unless a kind, a layer or a head is named."""
        on_patches = [one for one in self.maps if one.keys == "patches"]
        chosen = [one for one in on_patches if one.queries != "patches"] or on_patches
        if kind or layer is not None or head is not None:
            chosen = [one for one in on_patches if _fits(one.name, kind, layer)]
        if not chosen:
            raise UsageError(f"there is no such map; there are {', '.join(one.name for one in self.maps)}")
        one = chosen[-1]
        if head is not None and not 0 <= head < len(one.weights):
            raise UsageError(f"{one.name} has heads 0 to {len(one.weights) - 1}, there is no head {head}")
        seen = one.weights.mean(0) if head is None else one.weights[head]
        if one.queries == "patches":
            return SceneFigure(self, seen.mean(0, keepdim=True), ("all patches",))
        titles = tuple(f"{each['name']} {each['score']:.0%}" for each in self.objects) or ("the whole",)
        return SceneFigure(self, seen[: len(titles)], titles)

    def to_dict(self, *, vectors: bool = True) -> dict[str, Any]:
        """Everything as plain values: what docs/look.md describes."""
        height, width = self.image.shape[1:]
        return {
            "format": "regard-scene-look",
            "version": 1,
            "task": self.task,
            "model": {"name": self.origin.name},
            "text": self.text,
            "answer": self.answer,
            "picture": {
                "width": width,
                "height": height,
                "rgb": base64.b64encode(self.image.transpose(1, 2, 0).tobytes()).decode(),
            },
            "grid": list(self.grid),
            "objects": list(self.objects),
            "off": {name: sorted(heads) for name, heads in self.off.items()},
            "maps": [
                {
                    "name": one.name,
                    "queries": one.queries,
                    "keys": one.keys,
                    "weights": (one.weights * 10_000).round().div(10_000).tolist(),
                }
                for one in self.maps
            ],
        }

    def to_json(self, *, vectors: bool = True) -> str:
        """`to_dict` as text."""
        return as_json(self.to_dict())

    def to_html(self) -> str:
        """A page in one file that needs no network."""
        return page(self.to_dict(), "scene.js")

    def save(self, path: str | PathLike[str]) -> None:
        """Write it by the ending of the path: .html, .json or .png."""
        writers: dict[str, Callable[[], str | bytes]] = {
            ".html": self.to_html,
            ".json": lambda: self.to_json() + "\n",
            ".png": lambda: self.figure().to_png(),
        }
        write(Path(path), writers)


def _fits(name: str, kind: str, layer: int | None) -> bool:
    stack, number, how = (*name.split("."), "", "")[:3]
    right = not kind or kind in (stack, how) or (kind == "cross" and stack == "pool")
    return right and (layer is None or number == str(layer))


def look_at_picture(
    model: Any,
    text: str,
    *,
    vectors: bool = True,
    off: Mapping[str, Iterable[int]] | None = None,
    threshold: float = 0.3,
    most: int = MOST_NUMBERS,
) -> SceneLook:
    """Show the picture at the path `text` to a classifier or a detector, and keep what every head looked at.

    `model` is a folder or what `regard.load` made of it; `off` switches heads off; objects below `threshold`
    are not shown. (`vectors` is for texts.)
    """
    seeing, origin = opened(model, load)
    body, silent = seeing.model, {name: sorted(set(heads)) for name, heads in (off or {}).items()}
    if not hasattr(body, "grid"):
        raise ModelError(f"{origin.name} has no attention to look at: its model is made of convolutions")
    grid = body.grid
    heads = sum(layer.attention.n_heads for layer in body.encoder)
    if heads * grid.places**2 > most:
        raise DataError(f"{grid.places:,} patches have more than the {most:,} weights that are shown")
    path = Path(text)
    held = pixels(open_picture(path), seeing.made.fit, text)
    inputs = torch.from_numpy(seeing.made.normalised(held))[None]
    with heads_off(silent), torch.inference_mode(), record() as tape:
        out = body(inputs)
    answer, objects, chosen = _told(seeing, out, threshold)
    return SceneLook(
        text=text,
        answer=answer,
        image=_shown(path, seeing.made.fit),
        grid=tuple(grid),
        maps=tuple(_maps(tape, chosen, grid.places)),
        objects=objects,
        task=seeing.task,
        origin=origin,
        off=silent,
    )


def _told(
    seeing: Any, out: Any, threshold: float
) -> tuple[str, tuple[dict[str, Any], ...], list[int] | None]:
    """What is said of the picture; of a detector, the objects with the numbers of their queries."""
    if isinstance(out, Tensor):
        chances = out[0].float().softmax(-1)
        best = int(chances.argmax())
        return f"{seeing.names[best]} ({float(chances[best]):.0%})", (), None
    chances, labels = out.classes[-1][0].float().softmax(-1)[:, :-1].max(-1)
    order = [int(query) for query in chances.argsort(descending=True) if chances[query] >= threshold]
    order = order or [int(chances.argmax())]
    objects = tuple(
        {
            "name": seeing.names[int(labels[query])],
            "score": round(float(chances[query]), 4),
            "box": [round(float(value), 4) for value in out.boxes[-1][0, query]],  # centre and size
        }
        for query in order
    )
    return f"{len(objects)} objects: {', '.join(each['name'] for each in objects)}", objects, order


def _maps(tape: Tape, chosen: list[int] | None, places: int) -> Iterable[SceneMap]:
    """Every map of the tape, of objects those that are shown, and the rollout; no place in front."""
    total = torch.eye(places)
    last: Tensor | None = None
    for site in tape.sites():
        weights = tape[site.name][0][0].float()  # (H, queries, keys)
        if site.stack == "encoder":
            weights = weights[:, -places:, -places:]
            total = (weights.mean(0) + torch.eye(places)) / 2 @ total
            yield SceneMap(site.name, "patches", "patches", weights)
        elif site.kind == "cross":
            weights = weights if chosen is None else weights[:, chosen]
            last = weights.mean(0)
            yield SceneMap(site.name, _NAMES[site.stack], "patches", weights)
        elif chosen is not None:
            yield SceneMap(site.name, "objects", "objects", weights[:, chosen][:, :, chosen])
    yield SceneMap("rollout of patches", "patches", "patches", total[None])
    if last is not None:
        name = "the whole" if chosen is None else "objects"
        yield SceneMap("rollout", name, "patches", (last @ total)[None])


def _shown(path: Path, fit: Fit) -> npt.NDArray[np.uint8]:
    """The picture as the model was shown it, larger and in colour."""
    scale = SIDE / max(fit.height, fit.width)
    size = max(1, round(fit.height * scale)), max(1, round(fit.width * scale))
    return pixels(open_picture(path), Fit(*size, 3, fit.how), str(path))
