"""One input tried on one parser: what may come out of it, and what it may cost.

A parser may take the input or refuse it with an error of exit code 2, in one short line. Anything else is a
finding: another exception, memory above 300 MB beside the input's own size, more seconds of the processor
than the patience there is. Before this file: `parsers.py`; after it: `__main__.py`.
"""

import contextlib
import faulthandler
import resource
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path

from regard.errors import RegardError

MEMORY = 300 * 2**20  # bytes that an input may cost beside its own size
MACHINE = 4 * 2**30  # bytes beyond which the system says no, so that nobody else suffers
LONGEST_MESSAGE = 2000  # characters: a line for people

Parser = Callable[[bytes], None]


class FindingError(AssertionError):
    """Something that may not be."""


def try_on(parser: Parser, data: bytes) -> None:
    """Hand the input to the parser; whatever is wrong comes out as an exception."""
    before = _forget_peak()
    try:
        parser(data)
    except RegardError as error:
        _check_message(error)
    grown = _peak() - before
    if grown > MEMORY + len(data):
        raise FindingError(f"{grown >> 20} MB for an input of {len(data)} bytes")


def _check_message(error: RegardError) -> None:
    """An error that a person gets: right exit code, one short line."""
    message = str(error)
    if error.exit_code != 2:
        raise FindingError(f"exit code {error.exit_code}") from error
    if len(message) > LONGEST_MESSAGE:
        raise FindingError(f"a message of {len(message)} characters") from error
    if not message.isprintable():
        raise FindingError(f"a message that a terminal would act on: {message!a}") from error


def place_of(error: BaseException) -> str:
    """What it is and where in our code it came from: two with the same are one finding."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "/regard/" in frame.filename] or list(frames)
    return f"{type(error).__name__} {Path(ours[-1].filename).name} {ours[-1].name}"


# What it costs -------------------------------------------------------------------------------------


def _forget_peak() -> int:
    """The bytes that the process holds now, from which its peak is counted anew (proc(5), clear_refs)."""
    with contextlib.suppress(OSError):  # not allowed everywhere; the peak is then that of the whole life
        Path("/proc/self/clear_refs").write_text("5")
        return _status("VmRSS")
    return _peak()


def _peak() -> int:
    return _status("VmHWM")


def _status(name: str) -> int:
    with Path("/proc/self/status").open() as file:
        return next(int(line.split()[1]) * 1024 for line in file if line.startswith(f"{name}:"))


def spare_the_machine() -> None:
    """A bound on what the process can take at all."""
    limit = _status("VmSize") + MACHINE
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


@contextlib.contextmanager
def patience(seconds: float) -> Iterator[None]:
    """End the process, with a traceback, when it has computed for so long; 0: never.

    The processor's seconds are counted, so that a busy machine changes nothing, and the signal needs no
    Python to be heard, so that a loop in C ends too.
    """
    if not seconds:
        yield
        return
    faulthandler.register(signal.SIGPROF, file=sys.__stderr__, chain=True)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
