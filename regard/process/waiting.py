"""How torch's threads wait for each other: awake where the cores are theirs, asleep where others need them.

Between two pieces of parallel work the threads of libgomp, which torch's wheels carry, spin for milliseconds:
fastest on a quiet machine. On a busy one the thread that spins keeps the one it waits for off the core, and a
run falls to a twentieth of its speed. libgomp spins for microseconds only where it manages more threads than
there are cores. So where ours wait for cores (`Judge`), it is given some more that do nothing (`Sleepers`).
No result depends on it. `watched` is put around whatever computes for long.
"""

import ctypes
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LOOK_EVERY = 0.25  # seconds
CROWDED = 1.0  # seconds that our threads wait for cores, together, in a second: one of them always has none
CALM = 8.0  # seconds awake that prove that the others have gone
FIRST_PAUSE, LAST_PAUSE = 2.0, 32.0  # seconds asleep before being awake is tried again
OF_THE_USER = ("OMP_WAIT_POLICY", "GOMP_SPINCOUNT")  # whoever sets these has decided
TASKS = Path("/proc/self/task")


class Judge:
    """Whether threads should be awake while they wait, from how long they have waited for cores."""

    def __init__(self) -> None:
        self.awake = True
        self._pause = FIRST_PAUSE
        self._since = float("-inf")  # awake or asleep

    def look(self, now: float, waited: float) -> bool:
        """The judgement at `now`; `waited` is in seconds a second. Asleep, it is tried anew now and then."""
        if self.awake and waited > CROWDED:
            calm = now - self._since >= CALM
            self._pause = FIRST_PAUSE if calm else min(2 * self._pause, LAST_PAUSE)
            self.awake, self._since = False, now
        elif not self.awake and now - self._since >= self._pause:
            self.awake, self._since = True, now
        return self.awake


class Sleepers:
    """Threads of libgomp that do nothing, in a team of their own, as many as there are cores."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library
        self._leave = threading.Event()
        self._thread: threading.Thread | None = None

    def come(self) -> None:
        """From now on libgomp's other threads fall asleep soon."""
        if self._thread is None:
            self._leave.clear()
            self._thread = threading.Thread(target=self._stay, name="regard-sleepers", daemon=True)
            self._thread.start()

    def go(self) -> None:
        """From now on they stay awake again."""
        if self._thread is not None:
            self._leave.set()
            self._thread.join()  # its team ends with it
            self._thread = None

    def _stay(self) -> None:
        nothing = ctypes.cast(ctypes.CDLL(None).free, ctypes.c_void_p)  # free(NULL) does nothing
        self._library.GOMP_parallel(nothing, None, self._library.omp_get_num_procs() + 1, 0)
        self._leave.wait()


class _Watch:
    """Looks every quarter of a second, as long as somebody computes."""

    def __init__(self) -> None:
        self.users = 0
        self.changed = threading.Condition()
        self.thread: threading.Thread | None = None

    def enter(self) -> None:
        with self.changed:
            self.users += 1
            if self.thread is None:
                self.thread = threading.Thread(target=self._run, name="regard-waiting", daemon=True)
                self.thread.start()
            self.changed.notify()

    def leave(self) -> None:
        with self.changed:
            self.users -= 1

    def _run(self) -> None:
        library = find_library()
        if library is None:
            return
        judge, sleepers = Judge(), Sleepers(library)
        before, then = waiting_times(), time.monotonic()
        while True:
            with self.changed:
                if not self.users:
                    self.changed.wait_for(lambda: self.users > 0)
                    before, then = waiting_times(), time.monotonic()
            time.sleep(LOOK_EVERY)
            after, now = waiting_times(), time.monotonic()
            waited = sum(after[task] - before.get(task, 0.0) for task in after)
            if judge.look(now, waited / (now - then)):
                sleepers.go()
            else:
                sleepers.come()
            before, then = after, now


_watch = _Watch()


@contextmanager
def watched() -> Iterator[None]:
    """What computes inside the block leaves the cores to others where they need them; may be nested."""
    _watch.enter()
    try:
        yield
    finally:
        _watch.leave()


def waiting_times() -> dict[str, float]:
    """By thread of this process, the seconds that it could have run and had no core; empty if unknown."""
    times: dict[str, float] = {}
    try:
        for task in TASKS.iterdir():
            try:
                times[task.name] = int((task / "schedstat").read_text(encoding="ascii").split()[1]) / 1e9
            except (OSError, ValueError, IndexError):  # it has ended, or the kernel does not count
                continue
    except OSError:
        return {}
    return times


def find_library() -> ctypes.CDLL | None:
    """The libgomp that torch has loaded into this process; None where there is none, or the user decided."""
    if any(name in os.environ for name in OF_THE_USER):
        return None
    try:
        lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
        path = next(line[line.index("/") :] for line in lines if "/libgomp" in line)
        library = ctypes.CDLL(path)
        library.GOMP_parallel.restype = None
        library.GOMP_parallel.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_uint, ctypes.c_uint]
        return library if hasattr(library, "omp_get_num_procs") else None
    except (OSError, StopIteration, ValueError, AttributeError):
        return None
