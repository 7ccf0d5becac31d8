"""What an encoder looked at, reading a text: every place looks at every place.

The answer is what its task makes of the text: gaps filled, a label, tags, or nothing where it gives vectors.
Before this file: `regard.tasks.encoder`; after it: `look.py`.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import torch

from regard.attention.record import record
from regard.attention.switch import heads_off
from regard.data.inputs import Tokens
from regard.errors import ModelError
from regard.look.inside import watching
from regard.look.look import MOST_NUMBERS, Look, check_size, opened
from regard.look.maps import maps_of
from regard.look.trace import heard
from regard.look.words import Side
from regard.tasks.task import load


def look_at_reading(
    model: Any,
    text: str,
    *,
    vectors: bool = True,
    off: Mapping[str, Iterable[int]] | None = None,
    only: Collection[str] | None = None,
    most: int = MOST_NUMBERS,
) -> Look:
    """Read `text` and keep what every head looked at.

    `model` is a folder of one of an encoder's tasks, or what `regard.load` made of it. `vectors` keeps the
    numbers of the walk, `off` switches heads off, `only` names the attentions to keep.
    """
    reading, origin = opened(model, load)
    reader = reading.reader
    silent = {name: sorted(set(heads)) for name, heads in (off or {}).items()}
    ids = reading.row(text)
    keep = None if only is None else frozenset(only).__contains__
    numbers = check_size(reader.body, len(ids), keep, most)
    with heads_off(silent), torch.inference_mode():
        vectors = vectors and numbers <= most
        with record(vectors=vectors) as tape, watching(reader.body if vectors else None) as inside:
            reader.body.encode(Tokens(torch.tensor([ids])))
        answer = reading.told(text)
    taped = maps_of(heard(tape, keep).values())
    if not taped:
        raise ModelError(f"{origin.name} has no attention to look at: its model taped nothing")
    name = taped[0].sides[0]  # the text alone; where the model can also write, it is what it has read
    return Look(
        text=text,
        answer=answer,
        sides={name: Side.of(ids, reader.tokenizer)},
        maps=taped,
        entered=inside.entered([name], reader.tokenizer),
        fed=inside.fed(reader.tokenizer),
        titles={name: "Text"},
        task=reading.task,
        origin=origin,
        off=silent,
    )
