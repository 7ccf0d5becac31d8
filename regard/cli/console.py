"""What a person reads: lines on stderr, cards on stdout, and streams that survive their readers.

rich is imported when something is drawn, not before: `--help` must not wait for it.
"""

import io
import os
import sys
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, TextIO, TypeVar, cast

from regard.errors import printable

if TYPE_CHECKING:
    from rich.console import Console

Thing = TypeVar("Thing")


def note(message: str = "") -> None:
    """One line for the person, on stderr."""
    print(printable(message), file=sys.stderr, flush=True)


def page() -> "Console | None":
    """A console on stdout if a person looks at it; None for a pipe or a file, which want plain text."""
    from rich.console import Console

    console = Console(highlight=False)
    return console if console.is_terminal else None


EVERY = 0.5  # seconds between two counts


def counted(things: Iterable[Thing], noun: str, *, on: "TextIO | None") -> Iterator[Thing]:
    """The things, while a count of them stands on a terminal; nowhere else."""
    if on is None or not on.isatty():
        yield from things
        return
    began = last = time.monotonic()
    width = 0
    try:
        for number, thing in enumerate(things, 1):
            yield thing
            if (now := time.monotonic()) - last >= EVERY:
                last = now
                text = f"{number:,} {noun}, {number / (now - began):,.0f} a second"
                on.write("\r" + text.ljust(width))
                on.flush()
                width = len(text)
    finally:
        if width:
            on.write("\r" + " " * width + "\r")
            on.flush()


class Unbroken:
    """A stream that falls silent when its reader has gone: hours of training are not lost with `tee`."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except BrokenPipeError:
            self._fall_silent()
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except BrokenPipeError:
            self._fall_silent()

    def _fall_silent(self) -> None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), self._stream.fileno())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def steady_streams() -> None:
    """No verb fails because of a narrow encoding on stdout, or because nobody reads its messages."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    if sys.stderr is not None:
        sys.stderr = cast(TextIO, Unbroken(sys.stderr))
