"""What a generator looked at while it drew, and its discriminator while it judged the drawing.

The text is the class that is asked for. A place of the map that attends stands for some pixels of the
picture; it looks at the map pooled to half its side. Before this file: `regard.tasks.gan`; after it:
`picture.py`.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch

from regard.attention.record import Tape, record
from regard.attention.switch import heads_off
from regard.errors import ModelError
from regard.look.look import opened
from regard.look.picture import PictureLook, PictureMap
from regard.tasks.gan.drawer import noise_of
from regard.tasks.gan.pixels import as_bytes
from regard.tasks.task import load


def look_at_drawing(
    model: Any,
    text: str,
    *,
    seed: int = 1,
    vectors: bool = True,
    off: Mapping[str, Iterable[int]] | None = None,
) -> PictureLook:
    """Draw the first picture of a seed and keep what every head looked at.

    `model` is a folder, or what `regard.load` made of it; `text` is a class, or nothing in particular where
    there are none. `off` switches heads off.
    """
    drawer, origin = opened(model, load)
    gan = drawer.model.eval()
    silent = {name: sorted(set(heads)) for name, heads in (off or {}).items()}
    number = drawer.number_of(text) if drawer.names else None
    device = next(gan.parameters()).device
    label = None if number is None else torch.tensor([number], device=device)
    with heads_off(silent), torch.inference_mode(), record() as tape:
        picture = gan.make(noise_of(seed, 0, 1, gan.noise).to(device), label)
        score = float(gan.judge(picture, label)[0])
    pixels: Any = as_bytes(picture)[0].cpu().numpy()
    told = f"the discriminator gives it {score:.2f} (real pictures were to get 1, drawings -1)"
    named = f"{drawer.names[number]}, " if number is not None else ""
    return PictureLook(
        np.ascontiguousarray(pixels),
        maps_of(tape, origin.name),
        f"{named}seed {seed}",
        told,
        "gan",
        origin,
        silent,
    )


def maps_of(tape: Tape, name: str) -> tuple[PictureMap, ...]:
    """Every attention that was heard, each on a square map."""
    found = []
    for site in tape.sites():
        weights = tape[site.name][0][0].float().cpu()  # (H, T, S)
        queries, keys = (round(size**0.5) for size in weights.shape[1:])
        found.append(PictureMap(site.name, weights, (queries, queries), (keys, keys)))
    if not found:
        raise ModelError(f"{name} has no attention to look at: its model taped nothing")
    return tuple(found)
