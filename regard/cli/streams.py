"""Lines in and lines out of `translate`: plain or gzip, a file or `-`, one at a time.

Unlike training data (regard/data/corpus.py) the input is read once, so it may be a pipe or have no end.
"""

import codecs
import contextlib
import gzip
import io
import sys
import typing
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from regard.errors import DataError, UsageError

_GZIP_MAGIC = b"\x1f\x8b"


def is_standard(path: Path) -> bool:
    """Whether `path` is `-`, which stands for stdin or stdout."""
    return str(path) == "-"


@contextlib.contextmanager
def reading(path: Path) -> Iterator[Iterator[str]]:
    """The lines of an input as text; opened at once, read as they are asked for."""
    if not is_standard(path):
        with _open(path) as handle:
            yield _texts(handle, str(path))
    elif sys.stdin is None:
        raise UsageError("stdin is closed; name a file with -i")
    else:
        yield _texts(typing.cast(io.BufferedReader, sys.stdin.buffer), "stdin")


def _texts(handle: io.BufferedReader, name: str) -> Iterator[str]:
    try:
        for number, raw in enumerate(_unzipped(handle), 1):
            yield _text(raw.rstrip(b"\r\n"), name, number)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{name} is a truncated or damaged gzip file ({error}); make it again") from error


def _text(raw: bytes, name: str, number: int) -> str:
    if number == 1:
        raw = raw.removeprefix(codecs.BOM_UTF8)
    if b"\0" in raw:
        raise DataError(f"{name} line {number}: holds a NUL byte; is this a text file?")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        where = f"{name} line {number}: byte {error.start + 1} (0x{raw[error.start]:02x})"
        raise DataError(f"{where} is not UTF-8; convert the input to UTF-8") from error


def _open(path: Path) -> io.BufferedReader:
    try:
        return path.open("rb")
    except IsADirectoryError:
        raise DataError(f"{path} is a directory; give a text file") from None
    except FileNotFoundError:
        raise DataError(f"{path} does not exist; check the path") from None
    except OSError as error:
        raise DataError(f"cannot open {path}: {error.strerror}") from error


def _unzipped(handle: io.BufferedReader) -> Iterator[bytes]:
    """Lines that end at the byte "\\n" and nowhere else."""
    zipped = handle.peek(2)[:2] == _GZIP_MAGIC
    yield from gzip.GzipFile(fileobj=handle) if zipped else handle


@contextlib.contextmanager
def writing(path: Path) -> Iterator[Callable[[str], None]]:
    """A function that writes one line at once, so that whoever reads us waits for nothing."""
    if is_standard(path):
        if sys.stdout is None:
            raise UsageError("stdout is closed; name a file with -o")
        yield _writer(sys.stdout.buffer, flush=True)
        return
    try:
        handle: BinaryIO = path.open("wb")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error
    with handle:
        if path.suffix == ".gz":
            with gzip.GzipFile(filename="", fileobj=handle, mode="wb", mtime=0) as zipped:
                yield _writer(zipped, flush=False)
        else:
            yield _writer(handle, flush=True)


def _writer(handle: BinaryIO | gzip.GzipFile, *, flush: bool) -> Callable[[str], None]:
    def write(line: str) -> None:
        handle.write(line.encode("utf-8") + b"\n")
        if flush:
            handle.flush()

    return write


def refuse_same_file(source: Path, output: Path) -> None:
    """Writing the file that is being read would empty it first."""
    if is_standard(source) or is_standard(output) or not (source.exists() and output.exists()):
        return
    if source.is_file() and source.samefile(output):
        raise UsageError(f"input and output are the same file, {output}; name another output with -o")
