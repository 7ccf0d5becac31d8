"""The compiled library, and the path that a model takes through it: the inner loops of one kind of processor.

A path may run where the processor says that it has the instructions and a child that tried them came back
(`process/machine.py`). `REGARD_ENGINE_PATH` names one to take instead of the best. Before this file:
`native/kernels.cpp`, the list of paths; after it: `library.py`.
"""

import ctypes
import functools
import importlib.util
import math
import os
from ctypes import c_char_p, c_double, c_int32
from pathlib import Path
from typing import Any

from regard.errors import UsageError
from regard.process import machine

VERSION = 20  # of the calls; a library that was built from other sources is not used
PRECISIONS = ("fp32", "int8", "bf16")  # of the packed weights; their numbers in kernels.h
SIZES = (64, 2048, 512)  # rows, columns, what is summed, in products that are timed
ROWS = (1, 32)  # of those by which a path is chosen for a model: a sentence alone, and a batch
MODULE = "regard.engine._native"
NARROW = ("avx2",)  # paths whose int8 has six bits of a weight: see native/avx2.cpp
OFF = "REGARD_NO_NATIVE"  # in the environment: do as if there were no library
FORCED = "REGARD_ENGINE_PATH"  # in the environment: the path to take


@functools.cache
def compiled() -> Any:
    """The loaded library, or the reason why there is none, as text."""
    if os.environ.get(OFF):
        return f"{OFF} is set"
    spec = importlib.util.find_spec(MODULE)
    if spec is None or spec.origin is None:
        return "it was not built: no C++ compiler was found when Regard was installed"
    try:
        library = ctypes.CDLL(spec.origin)
        if library.regard_version() != VERSION:
            return "it was built from other sources; install Regard again"
    except (OSError, AttributeError) as error:
        return f"it cannot be loaded ({error}); install Regard again"
    library.regard_paths.restype = library.regard_fault.restype = c_char_p
    library.regard_fault.argtypes = [c_char_p, c_int32, c_int32, c_int32]
    library.regard_speed.restype = c_double
    library.regard_speed.argtypes = [c_char_p, *[c_int32] * 5, c_double]
    for call in (library.regard_offers, library.regard_try):
        call.argtypes, call.restype = [c_char_p], c_int32
    return library


def available() -> str | None:
    """Why the native library cannot be used; None where it can."""
    found = compiled()
    return found if isinstance(found, str) else None


def paths() -> list[str]:
    """The paths that were compiled in, the best first."""
    return str(compiled().regard_paths().decode()).split(",")


def offered() -> list[str]:
    """Those of them that this processor says it can run, the best first."""
    return [name for name in paths() if compiled().regard_offers(name.encode())]


@functools.cache
def running() -> list[str]:
    """Those of them that do run here, the best first: a hypervisor may kill what its processor offers.

    The last one is of plain C++ and always runs.
    """
    return _running(again=False)


def try_again() -> list[str]:
    """The same without what is remembered."""
    running.cache_clear()
    return _running(again=True)


def _running(*, again: bool) -> list[str]:
    *tried, plain = offered()
    return [*machine.paths_that_run(_place(), tried, again=again), plain]


def _place() -> Path:
    spec = importlib.util.find_spec(MODULE)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin)


@functools.cache
def fastest(columns: int, summed: int) -> str:
    """The path that is fastest at a model's own products, of one row and of many, measured once a machine.

    Only among those that sum all eight bits of a weight, and so sum alike; where there are not two, the best.
    """
    alike = [name for name in running()[:-1] if name not in NARROW]
    if len(alike) < 2:
        return running()[0]

    def rate(name: str) -> float:
        rates = (speed(name, "int8", threads=1, sizes=(m, columns, summed), seconds=0.01) for m in ROWS)
        return math.prod(rates)

    return next(iter(machine.paths_by_speed(_place(), alike, (columns, summed), rate)), alike[0])


def speed(
    name: str,
    precision: str,
    *,
    threads: int,
    sizes: tuple[int, int, int] = SIZES,
    seconds: float = 0.04,
) -> float:
    """Operations a second of a path's products, the best of three tries; multiply and add are two."""
    number = PRECISIONS.index(precision)
    rate = compiled().regard_speed
    return max(float(rate(name.encode(), number, *sizes, threads, seconds)) for _ in range(3))


def fault(name: str, m: int, n: int, k: int) -> str:
    """What a path does differently from plain loops over (m, k) by (k, n); empty where nothing."""
    return str(compiled().regard_fault(name.encode(), m, n, k).decode())


def path(columns: int = 0, summed: int = 0) -> str:
    """The path that a model takes: the one that is forced, or the best; for such products, if told."""
    name = os.environ.get(FORCED)
    if not name:
        return fastest(columns, summed) if columns else running()[0]
    if name not in paths():
        raise UsageError(f"{FORCED} ({name}) must be one of {', '.join(paths())}")
    if name not in running():
        raise UsageError(f"{FORCED} ({name}): this machine runs {', '.join(running())}")
    return name
