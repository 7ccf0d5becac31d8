"""Heads switched off: they contribute nothing, in training and in decoding, whatever computes them.

    with heads_off({"decoder.1.cross": {0, 3}}):
        translator.translate(["..."])

Nothing costs where no head is off. Read by `heads.py`; the names are those of the tape (`record.py`).
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

_off: ContextVar[Mapping[str, frozenset[int]]] = ContextVar("heads_off", default={})  # noqa: B039


def off(name: str) -> frozenset[int]:
    """The heads of the attention `name` that are switched off here."""
    return _off.get().get(name, frozenset())


def any_off() -> bool:
    """Whether any head is switched off here."""
    return bool(_off.get())


@contextmanager
def heads_off(heads: Mapping[str, Iterable[int]]) -> Iterator[None]:
    """Switch heads off inside the block, beside those that are off already.

    >>> with heads_off({"encoder.0.self": [2]}):
    ...     sorted(off("encoder.0.self"))
    [2]
    """
    joined = {name: off(name) | frozenset(numbers) for name, numbers in heads.items()}
    token = _off.set({**_off.get(), **joined})
    try:
        yield
    finally:
        _off.reset(token)
