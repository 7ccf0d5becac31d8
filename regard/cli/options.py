"""How a verb says what it takes: a frozen dataclass of annotated fields instead of a dozen parameters.

typer reads a function's signature; `takes` gives the function the signature of its options.
"""

import inspect
import math
from collections.abc import Callable
from typing import TypeVar

from regard.errors import UsageError, shown

LARGEST = 2**53  # whole number that a flag takes; more than there are of anything

Options = TypeVar("Options")


def takes(options: type[Options]) -> Callable[[Callable[[Options], None]], Callable[..., None]]:
    """Let typer call `verb(options)` with the fields of `options` as its arguments and flags."""

    def decorate(verb: Callable[[Options], None]) -> Callable[..., None]:
        def call(**given: object) -> None:
            for name, value in given.items():
                _refuse_odd_number(name, value)
            verb(options(**given))

        call.__name__ = verb.__name__
        call.__doc__ = verb.__doc__
        call.__signature__ = inspect.signature(options)  # type: ignore[attr-defined]
        return call

    return decorate


def _refuse_odd_number(name: str, value: object) -> None:
    """Refuse what is a number to Python and to nobody else, before any work is done."""
    flag = f"--{name.replace('_', '-')}"
    if isinstance(value, float) and not math.isfinite(value):
        raise UsageError(f"{flag} ({value}) must be a finite number")
    if isinstance(value, int) and abs(value) > LARGEST:
        raise UsageError(f"{flag} ({shown(value)}) must be between -{LARGEST} and {LARGEST}")
