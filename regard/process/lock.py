"""One trainer a folder: `.lock` is held (flock) while training and names the process that holds it.

The kernel lets go of it when the process ends, however it ends, so a lock is never stale.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from regard.errors import StorageError, UsageError

LOCK = ".lock"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock inside the block; UsageError if another process holds it."""
    path = folder / LOCK
    number = _acquire(path)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(number)


def _acquire(path: Path) -> int:
    """The file descriptor that holds the lock."""
    while True:
        try:
            number = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise StorageError(f"cannot write into {path.parent}: {error.strerror}") from error
        try:
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.pread(number, 32, 0).decode(errors="replace").strip() or "unknown"
            os.close(number)
            raise UsageError(f"{path.parent} is being trained by process {owner}") from None
        if _is_same_file(number, path):
            os.ftruncate(number, 0)
            os.pwrite(number, f"{os.getpid()}\n".encode(), 0)
            return number
        os.close(number)  # its last owner removed it between our open and our lock


def _is_same_file(number: int, path: Path) -> bool:
    try:
        found = path.stat()
    except FileNotFoundError:
        return False
    held = os.fstat(number)
    return (held.st_ino, held.st_dev) == (found.st_ino, found.st_dev)
