"""Several processes behind one port, and models reloaded without a request lost: `regard serve --workers`.

The first process listens and starts the others, which inherit its socket and take connections from it. On
SIGHUP it starts as many anew, with what the folders hold then; when those are ready, the old ones take no
more connections, answer whom they have, and end. It is one socket for all, not one each (SO_REUSEPORT): what
waits in a socket of its own is lost with the process that closes it. Before this file: `regard serve`.
"""

import contextlib
import ctypes
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType

RETIRE = signal.SIGUSR1  # to a worker: take no more connections, and end when those that are there have
LOOK_EVERY = 0.25  # seconds
PAUSE = 1.0  # seconds that a worker must have lived before another takes its place at once
_PARENT_DIED = 1  # PR_SET_PDEATHSIG of prctl

Work = Callable[[Callable[[], None], bool], None]  # serves; calls what it is given when ready; the first one?


@dataclass
class Worker:
    """A process that serves."""

    number: int
    generation: int
    pipe: int  # it is written to when the worker is ready
    ready: bool = False
    retired: bool = False
    began: float = field(default_factory=time.monotonic)


class Workers:
    """The processes of one server. A generation is those that have loaded the same models."""

    def __init__(self, count: int, work: Work, said: Callable[[str], None]) -> None:
        self.count, self.work, self.said = count, work, said
        self.there: dict[int, Worker] = {}
        self.generation = 0
        self.stood = -1  # the last generation that was whole
        self.signal = 0  # that ends it
        self.reload = False

    def run(self) -> None:
        """Until it is told to end, or the first of them cannot begin: its exit code is ours then."""
        with self._listening():
            self._step()
            while not self.signal:
                self._look()
                code = self._reap()
                if code and self.stood < 0:
                    self._end()
                    raise SystemExit(code)
                if not self.signal:
                    self._step()
            self._end()
        signal.raise_signal(self.signal)

    @contextmanager
    def _listening(self) -> Iterator[None]:
        numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        before = {number: signal.signal(number, self._heard) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _heard(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            self.reload = True
        elif self.signal:  # the second one
            self._tell(signal.SIGKILL)
        else:
            self.signal = number

    def _fresh(self) -> list[Worker]:
        """Those of this generation."""
        every = self.there.values()
        return [each for each in every if each.generation == self.generation and not each.retired]

    def _step(self) -> None:
        """Start who is missing, the first alone: where it cannot load a model, one line says so."""
        fresh = self._fresh()
        if not all(each.ready for each in fresh):
            return
        if len(fresh) < self.count:
            self._start(self.count - len(fresh) if fresh else 1)
            return
        old = [each for each in self.there.values() if each.generation < self.generation and not each.retired]
        for each in old:
            each.retired = True
            self._send(each, RETIRE)
        if self.stood < self.generation:
            self.stood = self.generation
            self.said("reloaded" if old else f"{self.count} worker{'' if self.count == 1 else 's'}")
        if self.reload:
            self.reload = False
            self.generation += 1

    def _start(self, count: int) -> None:
        """So many more workers."""
        for _ in range(count):
            pipe, other = os.pipe()
            first = self.generation == 0 and self.stood < 0 and not self.there
            number = os.fork()
            if number == 0:
                os.close(pipe)
                _serve(self.work, other, first=first)
            os.close(other)
            self.there[number] = Worker(number, self.generation, pipe)

    def _look(self) -> None:
        """Wait a moment for workers that become ready."""
        waiting = {each.pipe: each for each in self.there.values() if not each.ready}
        found, _, _ = select.select(list(waiting), [], [], LOOK_EVERY)
        for pipe in found:
            waiting[pipe].ready = bool(os.read(pipe, 1))
            if not waiting[pipe].ready:
                time.sleep(LOOK_EVERY / 5)  # it is ending

    def _reap(self) -> int:
        """Take leave of those that ended; the exit code of one that was to serve and never did."""
        failed = 0
        for number in list(self.there):
            found, status = os.waitpid(number, os.WNOHANG)
            if not found:
                continue
            gone = self.there.pop(number)
            os.close(gone.pipe)
            if gone.retired or self.signal:
                continue
            code = os.waitstatus_to_exitcode(status)
            if not gone.ready:
                failed = code if code > 0 else 1
            if self.stood >= 0:
                self._replace(gone, code)
        return failed

    def _replace(self, gone: Worker, code: int) -> None:
        """Another takes the place of one that ended by itself; a reload that fails is given up."""
        if gone.generation > self.stood:
            for each in self._fresh():
                each.retired = True
                self._send(each, signal.SIGKILL)
            self.generation = self.stood
            self.said("the reload failed; what was served before is served on")
            return
        self.said(f"a worker ended with {code}; another takes its place")
        time.sleep(max(0.0, PAUSE - (time.monotonic() - gone.began)))

    def _send(self, worker: Worker, number: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker.number, number)

    def _tell(self, number: int) -> None:
        for each in list(self.there.values()):
            self._send(each, number)

    def _end(self) -> None:
        """Those that are there answer what they have taken, and go."""
        self._tell(signal.SIGTERM)
        while self.there:
            self._reap()
            time.sleep(LOOK_EVERY / 5)


def _serve(work: Work, ready: int, *, first: bool) -> None:
    """A worker's life; it ends with the process that started it, and Ctrl-C is that one's to hear."""
    os.setpgid(0, 0)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PARENT_DIED, signal.SIGTERM)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # until the server hears it

    def told() -> None:
        os.write(ready, b".")

    try:
        work(told, first)
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it is ending already
    raise SystemExit(0)
