"""Files that are there whole or not at all, also when the power goes while they are written.

Written under another name in the same folder, flushed to the disk, then renamed over the old one.
A full disk leaves the old file as it was and becomes a StorageError.
"""

import contextlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from regard.errors import StorageError

TEMPORARY = ".part"


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """Let `write` fill a temporary file beside `path`, then put it in the place of `path`."""
    write_together(path.parent, {path.name: write})


def write_together(folder: Path, files: Mapping[str, Callable[[Path], object]]) -> None:
    """The same for several files of one folder: all are flushed first, then renamed in this order."""
    parts = {folder / name: folder / (name + TEMPORARY) for name in files}
    try:
        for write, part in zip(files.values(), parts.values(), strict=True):
            _write(write, part)
        for path, part in parts.items():
            part.replace(path)
        sync_folder(folder)
    except BaseException as error:
        for part in parts.values():
            with contextlib.suppress(OSError):  # the failure that matters is on its way already
                part.unlink(missing_ok=True)
        # safetensors reports the system's errors as its own class; the cause is in the words only.
        if isinstance(error, OSError) or type(error).__name__ == "SafetensorError":
            reason = getattr(error, "strerror", None) or error
            what = folder / next(iter(files)) if len(files) == 1 else f"into {folder}"
            raise StorageError(f"cannot write {what}: {reason}; what was saved before is intact") from error
        raise


def _write(write: Callable[[Path], object], part: Path) -> None:
    """Fill one file, flushed, with the mode that any file made here gets; libraries choose a narrower one."""
    part.unlink(missing_ok=True)
    part.touch()
    mode = part.stat().st_mode
    write(part)
    with part.open("rb+") as file:
        os.fchmod(file.fileno(), mode)
        os.fsync(file.fileno())


def write_text(path: Path, text: str) -> None:
    """A small text file, atomically."""
    write_atomically(path, lambda part: part.write_text(text, encoding="utf-8"))


def write_bytes(path: Path, content: bytes) -> None:
    """A small file, atomically."""
    write_atomically(path, lambda part: part.write_bytes(content))


def remove_parts(folder: Path) -> None:
    """Clear away what an interrupted write left in `folder`."""
    for part in folder.glob(f"*{TEMPORARY}"):
        part.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Make the rename itself last; some file systems keep the folder apart from the file."""
    number = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
