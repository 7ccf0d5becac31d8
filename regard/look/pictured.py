"""What a classifier or a detector looked at in a picture: for every patch, object or the whole, each head.

`rollout` follows the looking through all layers at once (Abnar & Zuidema 2020): the product of (A + 1) / 2 of
the encoder's layers, A the mean of a layer's heads. Before this file: `regard.tasks.image`,
`regard.tasks.detection`; after it: `picture.py`.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.attention.record import Tape, record
from regard.attention.switch import heads_off
from regard.errors import DataError, ModelError
from regard.images.picture import Fit, Pixels, open_picture, pixels
from regard.look.look import MOST_NUMBERS, opened
from regard.look.picture import OBJECTS, WHOLE, Grid, PictureLook, PictureMap
from regard.tasks.task import load

SIDE = 384  # pixels of the longer side of the picture that is shown


def look_at_picture(
    model: Any,
    text: str,
    *,
    picture: bytes | None = None,
    vectors: bool = True,
    off: Mapping[str, Iterable[int]] | None = None,
    threshold: float = 0.3,
    most: int = MOST_NUMBERS,
) -> PictureLook:
    """Show the picture at the path `text` to a classifier or a detector, and keep what every head looked at.

    `model` is a folder or what `regard.load` made of it; `picture` is the file itself where it lies nowhere;
    `off` switches heads off; objects below `threshold` are not shown. (`vectors` is for texts.)
    """
    seeing, origin = opened(model, load)
    body, silent = seeing.model, {name: sorted(set(heads)) for name, heads in (off or {}).items()}
    if not hasattr(body, "grid"):
        raise ModelError(f"{origin.name} has no attention to look at: its model is made of convolutions")
    grid: Grid = tuple(body.grid)
    heads = sum(layer.attention.n_heads for layer in body.encoder)
    if heads * body.grid.places**2 > most:
        raise DataError(f"{body.grid.places:,} patches have more than the {most:,} weights that are shown")
    source = Path(text) if picture is None else picture
    held = pixels(open_picture(source, text), seeing.made.fit, text)
    inputs = torch.from_numpy(seeing.made.normalised(held))[None]
    with heads_off(silent), torch.inference_mode(), record() as tape:
        out = body(inputs.to(seeing.device))
    answer, objects, chosen = _told(seeing, out, threshold)
    return PictureLook(
        pixels=_shown(source, text, seeing.made.fit),
        maps=tuple(_maps(tape, chosen, grid)),
        text=text,
        answer=answer,
        task=seeing.task,
        origin=origin,
        off=silent,
        objects=objects,
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
    count = "1 object" if len(objects) == 1 else f"{len(objects)} objects"
    return f"{count}: {', '.join(each['name'] for each in objects)}", objects, order


def _maps(tape: Tape, chosen: list[int] | None, grid: Grid) -> Iterable[PictureMap]:
    """Every map of the tape, of objects those that are shown, and the rollout; no place in front."""
    places = grid[0] * grid[1]
    total = torch.eye(places)
    things = WHOLE if chosen is None else OBJECTS
    last: Tensor | None = None
    for site in tape.sites():
        weights = tape[site.name][0][0].float().cpu()  # (H, queries, keys)
        if site.stack == "encoder":
            weights = weights[:, -places:, -places:]
            total = (weights.mean(0) + torch.eye(places)) / 2 @ total
            yield PictureMap(site.name, weights, grid, grid)
        elif site.kind == "cross":
            weights = weights if chosen is None else weights[:, chosen]
            last = weights.mean(0)
            yield PictureMap(site.name, weights, things, grid)
        elif chosen is not None:
            yield PictureMap(site.name, weights[:, chosen][:, :, chosen], OBJECTS, OBJECTS)
    yield PictureMap("rollout of patches", total[None], grid, grid)
    if last is not None:
        yield PictureMap("rollout", (last @ total)[None], things, grid)


def _shown(source: Path | bytes, name: str, fit: Fit) -> Pixels:
    """The picture as the model was shown it, larger and in colour."""
    scale = SIDE / max(fit.height, fit.width)
    size = max(1, round(fit.height * scale)), max(1, round(fit.width * scale))
    return pixels(open_picture(source, name), Fit(*size, 3, fit.how), name)
