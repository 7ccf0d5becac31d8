"""What a person reads: lines on stderr, cards on stdout, and streams that survive their readers.

rich is imported when something is drawn, not before: `--help` must not wait for it.
"""

import io
import os
import sys
from typing import TYPE_CHECKING, Any, TextIO, cast

from regard.errors import printable

if TYPE_CHECKING:
    from rich.console import Console


def note(message: str = "") -> None:
    """One line for the person, on stderr."""
    print(printable(message), file=sys.stderr, flush=True)


def page() -> "Console | None":
    """A console on stdout if a person looks at it; None for a pipe or a file, which want plain text."""
    from rich.console import Console

    console = Console(highlight=False)
    return console if console.is_terminal else None


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
