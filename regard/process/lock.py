"""One trainer a folder: `.lock` is held (flock) while training and names the process that holds it.

The kernel lets go of it when the process ends, however it ends, so a lock is never stale. Where there is no
flock (Windows), a byte far behind the name is locked.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from regard.errors import StorageError, UsageError

try:
    fcntl: Any = import_module("fcntl")
except ImportError:
    fcntl = None

LOCK = ".lock"
FAR = 2**20  # a place of the file where nothing is written


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock inside the block; UsageError if another process holds it."""
    path = folder / LOCK
    number = _acquire(path)
    try:
        yield
    finally:
        if fcntl is None:  # an open file cannot be removed there
            os.close(number)
            path.unlink(missing_ok=True)
        else:
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
            _hold(number)
        except (BlockingIOError, PermissionError):
            os.lseek(number, 0, os.SEEK_SET)
            owner = os.read(number, 32).decode(errors="replace").strip() or "unknown"
            os.close(number)
            raise UsageError(f"{path.parent} is being trained by process {owner}") from None
        if _is_same_file(number, path):
            os.ftruncate(number, 0)
            os.lseek(number, 0, os.SEEK_SET)
            os.write(number, f"{os.getpid()}\n".encode())
            return number
        os.close(number)  # its last owner removed it between our open and our lock


def _hold(number: int) -> None:
    """Take the lock of an open file, or fail at once."""
    if fcntl is not None:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return
    windows: Any = import_module("msvcrt")
    os.lseek(number, FAR, os.SEEK_SET)
    windows.locking(number, windows.LK_NBLCK, 1)


def _is_same_file(number: int, path: Path) -> bool:
    try:
        found = path.stat()
    except FileNotFoundError:
        return False
    held = os.fstat(number)
    return (held.st_ino, held.st_dev) == (found.st_ino, found.st_dev)
