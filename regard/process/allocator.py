"""What glibc does with freed memory.

A trainer keeps large blocks, because half of its page faults were glibc's trimming; a server gives them back,
because what one large request took would be held for ever, and now and then also the pages between small
blocks that are still in use.
"""

import ctypes
import sys
import threading
import time
from typing import Any

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # glibc's malloc.h
LOOK = 2.0  # seconds from look to look at how many bytes are free
GROWN = 32 << 20  # free bytes more than there were, after which their pages are given back


def keep_freed_memory() -> bool:
    """Raise glibc's mmap and trim thresholds for this process; False where there is no glibc."""
    return _set({_MMAP_THRESHOLD: 2**30, _TRIM_THRESHOLD: 2**31 - 1})


def return_freed_memory() -> bool:
    """Give blocks of 128 KB back as they are freed, and let all threads share the rest; False: no glibc.

    By itself glibc raises both thresholds with every large block, and keeps a heap for each thread. Called
    before there are threads.
    """
    return _set({_MMAP_THRESHOLD: 2**17, _TRIM_THRESHOLD: 2**22, _ARENA_MAX: 2})


def sweep_freed_memory() -> None:
    """Give back the free pages between blocks in use, whenever there are more; in a thread of its own.

    It sleeps, and works outside the interpreter's lock. Nothing is done where glibc is older than 2.33.
    """
    library = _glibc()
    if hasattr(library, "mallinfo2"):
        library.mallinfo2.restype = _Info
        threading.Thread(target=_sweep, args=(library,), name="regard-sweep", daemon=True).start()


def _sweep(library: Any) -> None:
    least = library.mallinfo2().fordblks  # free bytes since the last time: pages that are gone count too
    while True:
        time.sleep(LOOK)
        free = library.mallinfo2().fordblks
        if free > least + GROWN:
            library.malloc_trim(0)
            least = free
        least = min(least, free)


class _Info(ctypes.Structure):
    """glibc's struct mallinfo2."""

    _fields_ = [
        *((name, ctypes.c_size_t) for name in ("arena", "ordblks", "smblks", "hblks", "hblkhd")),
        *((name, ctypes.c_size_t) for name in ("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")),
    ]


def _glibc() -> Any:
    """The C library of this process, or None where it is not glibc."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        library = ctypes.CDLL(None)
        return library if hasattr(library, "mallopt") else None
    except OSError:
        return None


def _set(options: dict[int, int]) -> bool:
    library = _glibc()
    return library is not None and all(library.mallopt(name, value) for name, value in options.items())
