"""What glibc does with freed memory.

A trainer keeps large blocks, because half of its page faults were glibc's trimming; a server gives them back,
because what one large request took would be held for ever.
"""

import ctypes
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # glibc's malloc.h


def keep_freed_memory() -> bool:
    """Raise glibc's mmap and trim thresholds for this process; False where there is no glibc."""
    return _set({_MMAP_THRESHOLD: 2**30, _TRIM_THRESHOLD: 2**31 - 1})


def return_freed_memory() -> bool:
    """Give blocks of 128 KB back as they are freed, and let all threads share the rest; False: no glibc.

    By itself glibc raises both thresholds with every large block, and keeps a heap for each thread. Called
    before there are threads.
    """
    return _set({_MMAP_THRESHOLD: 2**17, _TRIM_THRESHOLD: 2**22, _ARENA_MAX: 2})


def _set(options: dict[int, int]) -> bool:
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return False
    return all(mallopt(name, value) for name, value in options.items())
