"""The tape: attention weights of the computation that really ran, by the name of the attention.

    with record() as tape:
        model(...)
    tape["decoder.3.cross"]   # a list of (B, H, T, S), one a call

Nothing is recorded, and nothing costs, where no tape is running. Written by `heads.py`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from torch import Tensor


class Tape:
    """Weights by name, in the order of the calls."""

    def __init__(self) -> None:
        self._calls: dict[str, list[Tensor]] = {}

    def add(self, name: str, weights: Tensor) -> None:
        """Keep the weights (B, H, T, S) of one call."""
        self._calls.setdefault(name, []).append(weights.detach())

    def __getitem__(self, name: str) -> list[Tensor]:
        return self._calls[name]

    def names(self) -> list[str]:
        """Every attention that was heard, in the order of its first call."""
        return list(self._calls)


_running: ContextVar[Tape | None] = ContextVar("tape", default=None)


def running_tape() -> Tape | None:
    """The tape of the innermost `record()`, if one is running."""
    return _running.get()


@contextmanager
def record() -> Iterator[Tape]:
    """Record every attention that runs inside the block."""
    tape = Tape()
    token = _running.set(tape)
    try:
        yield tape
    finally:
        _running.reset(token)
