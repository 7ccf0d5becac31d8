"""Several processes behind one port, and models reloaded without a request lost: `regard serve --workers`.

The first process listens and starts a mould, which loads the models and forks into the workers: what was
loaded is in memory once. They inherit the socket and take connections from it. On SIGHUP another mould loads
what the folders hold then; when its workers are ready, the old ones take no more connections, answer whom
they have, and end, and their mould with them. It is one socket for all, not one each (SO_REUSEPORT): what
waits in a socket of its own is lost with the process that closes it. Before this file: `regard serve`.
"""

import contextlib
import ctypes
import gc
import os
import select
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FrameType
from typing import NoReturn, Self

from regard.errors import UsageError
from regard.process.stopping import awaited

# To a worker: take no more connections, and end when those that are there have. Windows has neither.
RETIRE = int(getattr(signal, "SIGUSR1", 0))
LOOK_EVERY = 0.25  # seconds
BEFORE = -1  # the generation of who answers while the first models are loaded
PAUSE = 1.0  # seconds that a worker must have lived before another takes its place at once
_PARENT_DIED = 1  # PR_SET_PDEATHSIG of prctl

# Serves; calls what it is given when it is ready; whether it is the first one.
Work = Callable[[Callable[[], object], bool], None]


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
    """So many processes that do the same: a server's moulds, one at a time, or the workers of a mould.

    A generation is those that have loaded the same models. `stands` is called when one is whole, with
    whether it takes the place of another.
    """

    def __init__(
        self, count: int, work: Work, said: Callable[[str], None], stands: Callable[[bool], object]
    ) -> None:
        if not hasattr(os, "fork"):
            raise UsageError(
                "--workers needs processes that can fork, which this system has not; leave it out"
            )
        self.count, self.work, self.said, self.stands = count, work, said, stands
        self.there: dict[int, Worker] = {}
        self.generation = 0
        self.stood = -1  # the last generation that was whole
        self.signal = 0  # that ends it
        self.reload = False

    def run(self) -> None:
        """Until it is told to end or to retire, or the first cannot begin: its exit code is ours then."""
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
        if self.signal != RETIRE:
            signal.raise_signal(self.signal)

    def meanwhile(self, work: Work) -> None:
        """Have something else done until the first generation stands."""
        self._start(work, BEFORE, first=True)

    @contextmanager
    def _listening(self) -> Iterator[None]:
        reloads = signal.getsignal(signal.SIGHUP) != signal.SIG_IGN  # the first process alone
        numbers = (signal.SIGINT, signal.SIGTERM, RETIRE, *([signal.SIGHUP] if reloads else []))
        before = {number: signal.signal(number, self._heard) for number in numbers}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _heard(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGHUP:
            self.reload = True
        elif self.signal == RETIRE != number:  # it was to take its time
            self.signal = number
            self._tell(signal.SIGTERM)
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
            for _ in range(self.count - len(fresh) if fresh else 1):
                self._start(self.work, self.generation, first=self.stood < 0 and not fresh)
            return
        old = [each for each in self.there.values() if each.generation < self.generation and not each.retired]
        for each in old:
            each.retired = True
            self._send(each, RETIRE)
        if self.stood < self.generation:
            self.stood = self.generation
            self.stands(self.generation > 0)
        if self.reload:
            self.reload = False
            self.generation += 1

    def _start(self, work: Work, generation: int, *, first: bool) -> None:
        """One more."""
        pipe, other = os.pipe()
        number = os.fork()
        if number == 0:
            os.close(pipe)
            _serve(work, lambda: os.write(other, b"."), first=first)
        os.close(other)
        self.there[number] = Worker(number, generation, pipe)

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
            if gone.retired or self.signal or gone.generation == BEFORE:
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
        self._tell(RETIRE if self.signal == RETIRE else signal.SIGTERM)
        while self.there:
            self._reap()
            time.sleep(LOOK_EVERY / 5)


def _serve(work: Work, told: Callable[[], object], *, first: bool) -> NoReturn:
    """A worker's life; it ends with the process that started it, and Ctrl-C is that one's to hear.

    It ends here, unless there is an error to tell: what its parent was in the middle of is not its to finish.
    """
    os.setpgid(0, 0)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PARENT_DIED, signal.SIGTERM)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    signal.signal(RETIRE, signal.SIG_DFL)  # who is not ready has nobody to answer
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))  # until the server hears it

    code = 0
    try:
        work(told, first)
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else 1
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # it is ending already
    with contextlib.suppress(OSError):
        sys.stderr.flush()
    os._exit(code)


class Meanwhile:
    """A process that does something else until this one is ready; it ends with it."""

    def __init__(self, work: Work) -> None:
        self._pipe, other = os.pipe()
        self._number = os.fork()
        if self._number == 0:
            os.close(self._pipe)
            _serve(work, lambda: os.write(other, b"."), first=True)
        os.close(other)

    def relieve(self) -> None:
        """Have it take no more, and wait until it does not."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._number, RETIRE)
        os.read(self._pipe, 1)  # nothing, where it has ended
        threading.Thread(target=self._reap, name="regard-reap", daemon=True).start()

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self._number, 0)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *fault: object) -> None:
        os.close(self._pipe)
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            if os.waitpid(self._number, os.WNOHANG)[0] == 0:
                os.kill(self._number, signal.SIGTERM)
                self._reap()


def keep(work: Work) -> int:
    """A process of its own for some work, which ends with this one; its number."""
    number = os.fork()
    if number == 0:
        _serve(work, lambda: None, first=True)
    return number


def prepare(loads: Iterable[Callable[[], None]]) -> None:
    """Load models so that this process can be forked: nobody but its first thread is left.

    What computes while they are loaded (OpenMP) belongs to the thread that asked for it and ends with it; a
    child would wait for ever for threads that only its parent has. What stays is looked through no more, for
    a search for garbage would write to every page of it.
    """
    with ThreadPoolExecutor(1) as beside:
        for load in loads:
            awaited(beside.submit(load))
    gc.collect()
    gc.freeze()
