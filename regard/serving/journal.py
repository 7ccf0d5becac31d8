"""The log: a line of JSON for each request, and one when the server is ready. No text, no key, no address.

Lines are written by a thread of their own, so that a reader of them who is slow is in nobody's way; what is
not taken in time is dropped, and counted in the next line. Before this file: `guard.py`, `service.py`.
"""

import contextlib
import json
import queue
import sys
import threading
from datetime import UTC, datetime
from typing import Any, TextIO

LEVELS = ("debug", "info", "warning", "error")
WAITING = 10_000  # lines that may wait to be written


class Journal:
    """What is told of what happens: from `level` on."""

    def __init__(self, level: str = "warning", stream: TextIO | None = None) -> None:
        self._from = LEVELS.index(level)
        self._stream = stream
        self._lines: queue.Queue[str | None] = queue.Queue(WAITING)
        self._dropped = 0
        self._writer: threading.Thread | None = None

    def request(self, method: str, path: str, status: int, seconds: float) -> None:
        """One request was answered; `path` is that of a route, or `other`."""
        level = "error" if status == 500 else "info"  # any other is an answer
        self._tell(level, "request", method=method, path=path, status=status, seconds=round(seconds, 4))

    def ready(self, models: int, seconds: float) -> None:
        """Everything is loaded."""
        self._tell("info", "ready", models=models, seconds=round(seconds, 2))

    def _tell(self, level: str, event: str, **fields: Any) -> None:
        if LEVELS.index(level) < self._from:
            return
        if self._writer is None:
            self._writer = threading.Thread(target=self._write, name="regard-journal", daemon=True)
            self._writer.start()
        moment = datetime.now(UTC).isoformat(timespec="milliseconds")
        dropped = {"dropped": self._dropped} if self._dropped else {}
        try:
            self._lines.put_nowait(
                json.dumps({"time": moment, "level": level, "event": event} | fields | dropped)
            )
            self._dropped = 0
        except queue.Full:
            self._dropped += 1

    def _write(self) -> None:
        while (line := self._lines.get()) is not None:
            with contextlib.suppress(OSError, ValueError):  # nobody reads it any more
                print(line, file=self._stream or sys.stderr, flush=True)

    def close(self) -> None:
        """Write what waits, for a second at most."""
        if self._writer is not None:
            with contextlib.suppress(queue.Full):
                self._lines.put_nowait(None)
            self._writer.join(1.0)
