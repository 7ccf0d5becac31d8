"""Freed memory goes back to the system, also where it lies between blocks that are in use."""

import subprocess
import sys

import pytest

HOLES = """
import os, time
from regard.process import allocator

allocator.return_freed_memory()
allocator.LOOK, allocator.GROWN = 0.05, 8 << 20
{before}


def resident():
    with open('/proc/self/statm') as file:
        return int(file.read().split()[1]) * os.sysconf('SC_PAGE_SIZE')


start = resident()
blocks = [bytearray(40_000) for _ in range(4000)]
kept = blocks[::100]
full = resident()
del blocks
end = time.monotonic() + {seconds}
while time.monotonic() < end and resident() > start + (40 << 20):
    time.sleep(0.02)
    kept.append(bytearray(1))
print(full - start, resident() - start)
"""


def held(before: str, seconds: float) -> tuple[int, int]:
    """Bytes above the start, full and after all but every hundredth of its blocks were freed."""
    code = HOLES.format(before=before, seconds=seconds)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    full, left = map(int, done.stdout.split())
    return full, left


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's memory, as Linux tells it")
def test_pages_between_blocks_in_use_are_given_back() -> None:
    full, left = held("allocator.sweep_freed_memory()", 30)
    assert full > 120 << 20
    assert left < 48 << 20
    full, left = held("", 0.5)  # this is what would be held for ever
    assert left > 100 << 20
