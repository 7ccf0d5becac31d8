"""Files that are there whole or not at all, also when the power goes while they are written.

Written under another name in the same folder, flushed to the disk, then renamed over the old one.
A full disk leaves the old file as it was and becomes a StorageError.
"""

import os
from collections.abc import Callable
from pathlib import Path

from regard.errors import StorageError

TEMPORARY = ".part"


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file beside `path`, then put it in the place of `path`."""
    part = path.with_name(path.name + TEMPORARY)
    try:
        write(part)
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        part.replace(path)
        _sync_folder(path.parent)
    except BaseException as error:
        part.unlink(missing_ok=True)
        # safetensors reports the system's errors as its own class; the cause is in the words only.
        if isinstance(error, OSError) or type(error).__name__ == "SafetensorError":
            reason = getattr(error, "strerror", None) or error
            raise StorageError(f"cannot write {path}: {reason}; what was saved before is intact") from error
        raise


def write_text(path: Path, text: str) -> None:
    """A small text file, atomically."""
    write_atomically(path, lambda part: part.write_text(text, encoding="utf-8"))


def remove_parts(folder: Path) -> None:
    """Clear away what an interrupted write left in `folder`."""
    for part in folder.glob(f"*{TEMPORARY}"):
        part.unlink(missing_ok=True)


def _sync_folder(folder: Path) -> None:
    """Make the rename itself last; some file systems keep the folder apart from the file."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
