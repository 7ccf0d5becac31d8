"""What a person reads beside the data: lines on stderr, tables and cards on stdout.

rich is imported when something is drawn, not before: `--help` must not wait for it.
"""

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def note(message: str = "") -> None:
    """One line for the person, on stderr."""
    print(message, file=sys.stderr, flush=True)


def page() -> "Console | None":
    """A console on stdout if a person looks at it; None for a pipe or a file, which want plain text."""
    from rich.console import Console

    console = Console(highlight=False)
    return console if console.is_terminal else None
