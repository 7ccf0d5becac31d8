"""How a verb says what it takes: a frozen dataclass of annotated fields instead of a dozen parameters.

typer reads a function's signature; `takes` gives the function the signature of its options.
"""

import inspect
from collections.abc import Callable
from typing import TypeVar

Options = TypeVar("Options")


def takes(options: type[Options]) -> Callable[[Callable[[Options], None]], Callable[..., None]]:
    """Let typer call `verb(options)` with the fields of `options` as its arguments and flags."""

    def decorate(verb: Callable[[Options], None]) -> Callable[..., None]:
        def call(**given: object) -> None:
            verb(options(**given))

        call.__name__ = verb.__name__
        call.__doc__ = verb.__doc__
        call.__signature__ = inspect.signature(options)  # type: ignore[attr-defined]
        return call

    return decorate
