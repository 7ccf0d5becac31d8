"""Ctrl-C and SIGTERM: a polite request first, an order the second time.

The first signal is remembered; the loop finishes its step, saves and leaves with `Stopped`. A second
one is obeyed at once; the checkpoint before is then what the run goes on from. An echo of the first does
not count: `timeout` signals the process and then its group, a terminal the whole group.
"""

import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, wait
from contextlib import contextmanager
from types import FrameType
from typing import TypeVar

ECHO = 1.0  # seconds
LOOK_UP = 0.2  # seconds; a signal that comes on the way into a wait without end would not be seen
Result = TypeVar("Result")


class Stopped(KeyboardInterrupt):
    """Training was asked to stop, has saved and can go on; `exit_code` is 128 + the signal."""

    def __init__(self, number: int, message: str) -> None:
        super().__init__(message)
        self.exit_code = 128 + number


class StopRequest:
    """The signal that came, or 0."""

    def __init__(self) -> None:
        self.signal = 0
        self.came = 0.0

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if not self.signal:
            self.signal, self.came = number, time.monotonic()
        elif time.monotonic() - self.came > ECHO:
            raise Stopped(number, "stopped at once; what was saved before is intact")


@contextmanager
def listen() -> Iterator[StopRequest]:
    """Remember the first signal while inside. Only the main thread can, others get no signals."""
    request = StopRequest()
    if threading.current_thread() is not threading.main_thread():
        yield request
        return
    before = {number: signal.signal(number, request) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield request
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def awaited(running: "Future[Result]") -> Result:
    """What a call gives that runs in another thread; signals are obeyed meanwhile."""
    while not wait([running], LOOK_UP).done:
        pass
    return running.result()
