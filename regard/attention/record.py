"""The tape: attention weights of the computation that really ran, by the name of the attention.

    with record() as tape:
        model(...)
    tape["decoder.3.cross"]   # a list of (B, H, T, S), one a call

With `record(vectors=True)` it also holds what the weights were made from. Nothing is recorded, and nothing
costs, where no tape is running. Written by `heads.py`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, fields
from typing import Any

from torch import Tensor, nn

from regard.attention.site import Site


@dataclass(frozen=True)
class Vectors:
    """The steps of one call, in their order; k and v are repeated where heads share them."""

    q: Tensor  # (B, H, T, K)
    k: Tensor  # (B, H, S, K)
    scores: Tensor  # (B, H, T, S), before the bias
    v: Tensor  # (B, H, S, K)
    out: Tensor  # (B, T, D), of all heads together
    bias: Tensor | None = None  # (B, H, T, S), what positions add to the scores

    def row(self, number: int) -> "Vectors":
        """One row of the batch, as a batch of one."""
        parts = {field.name: getattr(self, field.name) for field in fields(self)}
        return Vectors(
            **{name: part[number : number + 1] for name, part in parts.items() if part is not None}
        )


def attentions(model: Any) -> list[Any]:
    """The modules of a model that write to the tape: those with a `site` and `n_heads`."""
    modules = model.modules() if isinstance(model, nn.Module) else ()
    return [each for each in modules if hasattr(each, "n_heads") and hasattr(each, "site")]


class Tape:
    """Weights by name, in the order of the calls."""

    def __init__(self, *, wants_vectors: bool = False) -> None:
        self.wants_vectors = wants_vectors
        self._calls: dict[str, list[Tensor]] = {}
        self._sites: dict[str, Site] = {}
        self._vectors: dict[tuple[str, int], Vectors] = {}

    def add(self, site: Site, weights: Tensor) -> None:
        """Keep the weights (B, H, T, S) of one call."""
        self._sites[site.name] = site
        self._calls.setdefault(site.name, []).append(weights.detach())

    def explain(self, site: Site, vectors: Vectors) -> None:
        """Keep what the weights of the last call were made from."""
        self._vectors[site.name, len(self._calls[site.name]) - 1] = vectors

    def __getitem__(self, name: str) -> list[Tensor]:
        return self._calls[name]

    def vectors(self, name: str) -> list[Vectors | None]:
        """What the weights of each call were made from; None where it was not asked for, or not given."""
        return [self._vectors.get((name, call)) for call in range(len(self._calls[name]))]

    def sites(self) -> list[Site]:
        """Where every attention stands that was heard, in the order of its first call."""
        return list(self._sites.values())

    def names(self) -> list[str]:
        """Every attention that was heard, in the order of its first call."""
        return list(self._calls)


_running: ContextVar[Tape | None] = ContextVar("tape", default=None)


def running_tape() -> Tape | None:
    """The tape of the innermost `record()`, if one is running."""
    return _running.get()


@contextmanager
def record(*, vectors: bool = False) -> Iterator[Tape]:
    """Record every attention that runs inside the block; with `vectors`, how its weights came about."""
    tape = Tape(wants_vectors=vectors)
    token = _running.set(tape)
    try:
        yield tape
    finally:
        _running.reset(token)
