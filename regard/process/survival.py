"""Asks a child process that may die, hang or lie (`probe.py`), and believes only what it proves.

A child is a new Python that loads torch for itself. Where torch is loaded here and has computed nothing,
a copy of this process (`fork`) answers in a tenth of the time.
"""

import faulthandler
import os
import select
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

from regard.process import probe

PROBE = Path(__file__).with_name("probe.py")
FORKS = sys.platform == "linux" and hasattr(os, "fork")  # elsewhere what torch is made of outlives no fork
# A busy machine can need a minute to load torch; a child that hangs costs this once.
LIMIT = 100.0  # seconds
COPY_LIMIT = 30.0  # seconds for a copy, which has nothing to load


def ask(
    who: str,
    names: Sequence[str],
    environment: Mapping[str, str],
    *,
    limit: float | None = None,
    fork: bool = False,
) -> dict[str, list[str]]:
    """The words that the probe printed for each name that it came back from, whether they are right or not.

    The name at which the child ended counts as dead; those after it are tried in another child. OSError where
    no process may be started. `fork`: `who` is torch, which is loaded here; no other thread may load it now.
    """
    found: dict[str, list[str]] = {}
    waiting = list(names)
    deadline = time.monotonic() + (LIMIT if limit is None else limit)
    while waiting and time.monotonic() < deadline:
        said = _ask_copy(waiting, environment) if fork else None
        said = _run(who, waiting, environment, deadline) if said is None else said
        lines = [line.split() for line in said.splitlines()]
        found |= {line[0]: line[1:] for line in lines if line and line[0] in waiting}
        waiting = [name for name in waiting if name not in found][1:]
    return found


def _run(who: str, names: Sequence[str], environment: Mapping[str, str], deadline: float) -> str:
    """What one child wrote before it ended."""
    command = [sys.executable, "-P", str(PROBE), who, *names]
    paths = os.pathsep.join(path for path in sys.path if path)
    try:
        done = subprocess.run(
            command,
            env={**environment, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=max(deadline - time.monotonic(), 0.01),
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        return (late.stdout or b"").decode(errors="replace")
    return done.stdout.decode(errors="replace")


def _ask_copy(names: Sequence[str], environment: Mapping[str, str]) -> str | None:
    """What a copy of this process wrote before it ended; None where there is none, or it did not end.

    It may hang for no fault of the processor: on a lock that another thread held in that moment.
    """
    reading, writing = os.pipe()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 on copies and threads
            child = os.fork()
    except OSError:
        os.close(reading)
        os.close(writing)
        return None
    if child == 0:
        _answer_as_copy(names, environment, writing)
    os.close(writing)
    said = _read_all(reading, time.monotonic() + COPY_LIMIT)
    os.close(reading)
    with suppress(OSError):  # whoever ignores SIGCHLD has no children to wait for
        if said is None:
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return said


def _answer_as_copy(names: Sequence[str], environment: Mapping[str, str], out: int) -> NoReturn:
    """Be the probe, and nothing else: no errors on the screen, no handlers at the end."""
    try:
        faulthandler.disable()  # to die here is no accident
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        os.environ.clear()
        os.environ.update(environment)
        sys.modules["torch"].set_num_threads(1)
        sys.stdout = os.fdopen(out, "w")
        probe.main("torch", list(names))
    finally:
        os._exit(0)


def _read_all(source: int, deadline: float) -> str | None:
    """Everything until the other end is closed; None where it is not in time."""
    pieces: list[bytes] = []
    poll = select.poll()
    poll.register(source, select.POLLIN)
    while poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
        piece = os.read(source, 2**16)
        if not piece:
            return b"".join(pieces).decode(errors="replace")
        pieces.append(piece)
    return None
