"""Memory for what the engine's threads make in passing: attention that is told, and looks as text.

Each takes what it will need before it begins, and waits until there is so much. One at a time may always
begin, however much it needs; what needs little waits for nobody, since the threads are few: a sentence whose
words are told must not stand behind a book. Used by `engine.py` and `tracing.py`, in threads, never by the
event loop.
"""

import contextlib
import threading
from collections.abc import Iterator

from regard.serving.limits import SCRATCH

LITTLE = 16  # of the whole, the part that is lent without a wait


class Scratch:
    """So many bytes for all threads."""

    def __init__(self, size: int) -> None:
        self.size, self.used = size, 0
        self._freed = threading.Condition()

    @contextlib.contextmanager
    def taking(self, size: int) -> Iterator[None]:
        """Have so many bytes meanwhile."""
        if size * LITTLE <= self.size:
            yield
            return
        with self._freed:
            self._freed.wait_for(lambda: not self.used or self.used + size <= self.size)
            self.used += size
        try:
            yield
        finally:
            with self._freed:
                self.used -= size
                self._freed.notify_all()


SHARED = Scratch(SCRATCH)
