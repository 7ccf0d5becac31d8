"""What happens beside attention: how pieces come in, and what the feed-forward part does at each place.

    with watching(model) as inside:
        model(...)
    inside.entered(["source", "read"], tokenizer), inside.fed(tokenizer)

Hooks note the calls of one reading; the core knows nothing of it. Which layer a feed-forward part belongs to
says the attention that ran before it, so that a tape must be running (`regard.attention.record`). Used by
`translated.py`, `written.py` and `encoded.py`; `document.py` tells it.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from regard.attention.record import running_tape
from regard.attention.site import Site
from regard.layers.embedding import Embedding
from regard.layers.feed_forward import FeedForward

DIMENSIONS = 48  # of a vector that are told, evenly over its width
UNITS = 4  # of a place that are told: those that say most
LIKE = 3  # pieces that are named
MOST_PRODUCTS = 2**31  # multiplications for the names of what units write; beyond, nothing is named

Near = tuple[tuple[str, float], ...]  # pieces, and how near they are


@dataclass(frozen=True)
class Entered:
    """How the pieces of one side come in: the vector of each, and what its place adds."""

    width: int  # of a vector
    dimensions: tuple[int, ...]  # those that are told
    tokens: Tensor  # (T, dimensions)
    positions: Tensor | None  # (T, dimensions); None where nothing is added: order comes in with attention
    alike: tuple[Near, ...]  # for each piece those whose vectors point most nearly where its own does


@dataclass(frozen=True)
class Unit:
    """One hidden unit at one place."""

    number: int
    value: float
    writes: tuple[str, ...] = ()  # the pieces that it makes likelier most of all, in a decoder


@dataclass(frozen=True)
class Fed:
    """The feed-forward part of one layer, place by place."""

    side: str
    layer: int
    units: int  # hidden ones
    active: Tensor  # (T,) the share of them that is above zero
    moved: Tensor  # (T,) how long what it adds is, for each unit of length of what it is added to
    strongest: tuple[tuple[Unit, ...], ...]  # of each place


@dataclass
class Inside:
    """What was noted of one reading; its first row is told."""

    model: Any
    read: list[tuple[Embedding, Tensor, Tensor]] = field(default_factory=list)  # ids (T,), vectors (T, D)
    fed_at: list[tuple[Site, FeedForward, Tensor, Tensor, Tensor]] = field(default_factory=list)

    def entered(self, sides: Sequence[str], tokenizer: Any) -> dict[str, Entered]:
        """By side how its pieces came in; the sides in the order in which they were read."""
        return {
            side: _entered(*call, tokenizer, target=side == "read" and len(sides) > 1)
            for side, call in zip(sides, self.read, strict=False)
        }

    def fed(self, tokenizer: Any) -> tuple[Fed, ...]:
        """Each feed-forward part that ran, in its order."""
        return tuple(self._fed(*call, tokenizer) for call in self.fed_at)

    def _fed(
        self, site: Site, part: FeedForward, before: Tensor, hidden: Tensor, out: Tensor, tokenizer: Any
    ) -> Fed:
        numbers = hidden.abs().topk(min(UNITS, hidden.shape[1]), -1).indices  # (T, UNITS)
        told = self._written(part, numbers, tokenizer) if site.queries != "source" else {}
        strongest = tuple(
            tuple(
                Unit(n, value, told.get(n, ()))
                for n, value in zip(row, hidden[at, row].tolist(), strict=True)
            )
            for at, row in enumerate(numbers.tolist())
        )
        return Fed(
            side=site.queries,
            layer=site.layer or 0,
            units=hidden.shape[1],
            active=(hidden > 0).float().mean(-1),
            moved=out.norm(dim=-1) / before.norm(dim=-1).clamp(min=1e-9),
            strongest=strongest,
        )

    def _written(self, part: FeedForward, numbers: Tensor, tokenizer: Any) -> dict[int, tuple[str, ...]]:
        """By unit the pieces whose output vectors its own points to most."""
        outputs: Tensor | None = getattr(self.model, "output_weight", None)
        units = torch.tensor(sorted({n for row in numbers.tolist() for n in row}))
        if outputs is None or outputs.numel() * len(units) > MOST_PRODUCTS:
            return {}
        written = part.outer.weight[:, units].t() @ outputs.t()  # (units, V)
        best = written.topk(min(LIKE, written.shape[1]), -1).indices
        return {
            n: tuple(tokenizer.shown(row, target=True))
            for n, row in zip(units.tolist(), best.tolist(), strict=True)
        }


@contextmanager
def watching(model: Any) -> Iterator[Inside]:
    """Note how pieces come in, and what feed-forward parts do, while a model reads inside the block."""
    inside = Inside(model)

    def came(module: Any, given: Any, out: Tensor) -> None:
        inside.read.append((module, given[0][0].detach(), out[0].detach()))

    def passed(module: Any, given: Any, out: Tensor) -> None:
        x, part = given
        tape = running_tape()
        if getattr(part, "shows", "") != "units" or tape is None or not tape.sites():
            return
        hidden = part.hidden(module.norm(x) if module.first else x)
        before, hidden, after = (each[0].detach() for each in (x, hidden, part.outer(hidden)))
        inside.fed_at.append((tape.sites()[-1], part, before, hidden, after))

    told = {"pieces": came, "way round": passed}
    hooks: list[Any] = []
    for module in model.modules() if isinstance(model, nn.Module) else ():
        hook = told.get(getattr(module, "shows", ""))
        hooks += [] if hook is None else [module.register_forward_hook(hook)]
    try:
        yield inside
    finally:
        for each in hooks:
            each.remove()


def _entered(embedding: Embedding, ids: Tensor, out: Tensor, tokenizer: Any, *, target: bool) -> Entered:
    matrix = embedding.weight.detach()
    tokens = matrix[ids] * embedding.scale  # (T, D)
    added = embedding.positions.embed(tokens[None])[0] - tokens
    width = matrix.shape[1]
    dimensions = torch.linspace(0, width - 1, min(DIMENSIONS, width)).round().long()
    return Entered(
        width=width,
        dimensions=tuple(dimensions.tolist()),
        tokens=tokens[:, dimensions],
        positions=added[:, dimensions] if bool(added.any()) else None,
        alike=tuple(_alike(matrix, ids, tokenizer, target=target)),
    )


def _alike(matrix: Tensor, ids: Tensor, tokenizer: Any, *, target: bool) -> Iterator[Near]:
    """For each id the pieces whose vectors have the smallest angles with its own, with the cosines."""
    lengths = matrix.norm(dim=1).clamp(min=1e-9)
    cosines = (matrix[ids] @ matrix.t()) / lengths / lengths[ids, None]  # (T, V)
    best = cosines.scatter(1, ids[:, None], -2.0).topk(min(LIKE, len(matrix) - 1), -1)
    for row, near in zip(best.indices.tolist(), best.values.tolist(), strict=True):
        yield tuple(zip(tokenizer.shown(row, target=target), near, strict=True))
