"""Walks side by side: the newest tokens of several go through a model in one pass.

Each keeps its own rules, its own way of choosing and what bends its model (`bending.py`); they share the pass
of the model beneath, where that offers one (`step_each`). No row knows its neighbours, so each walk writes
what it would write alone. Before this file: `search.py`; after it: `regard.serving.writing`.
"""

from collections.abc import Sequence
from typing import Any

from torch import Tensor

from regard.decoding.bending import Bent
from regard.decoding.search import Walk


def beneath(model: Any) -> Any:
    """The model inside of all that bends it."""
    while isinstance(model, Bent):
        model = model.model
    return model


def read_together(walks: Sequence[Walk[Any]]) -> list[tuple[Tensor, Any]]:
    """For each walk what its model gives for its newest ids: logits (R, V) and the state after them."""
    bent = [_peeled(walk) for walk in walks]
    found: list[Any] = [None] * len(walks)
    groups: dict[int, list[int]] = {}
    for number, walk in enumerate(walks):
        groups.setdefault(id(beneath(walk.model)), []).append(number)
    for group in groups.values():
        model = beneath(walks[group[0]].model)
        asked = [(walks[number].ids, bent[number][1]) for number in group]
        each = getattr(model, "step_each", None)
        read = [model.step(*one) for one in asked] if each is None else each(asked)
        for number, (logits, state) in zip(group, read, strict=True):
            for layer, before in reversed(bent[number][0]):
                logits, state = layer.bend(walks[number].ids, before, logits, state)
            found[number] = logits, state
    return found


def _peeled(walk: Walk[Any]) -> tuple[list[tuple[Bent, Any]], Any]:
    """What bends the model of a walk, from outside to inside, with its states; and the innermost state."""
    model: Any = walk.model
    layers, state = [], walk.state
    while isinstance(model, Bent):
        state = model.ready(state)
        layers.append((model, state))
        model, state = model.model, state.inner
    return layers, state
