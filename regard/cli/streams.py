"""Lines in and lines out of `translate`: plain or gzip, a file or `-`, one at a time.

Unlike training data (regard/data/corpus.py) the input is read once, so it may be a pipe or have no end.
Before this file: `regard.data.lines`.
"""

import contextlib
import gzip
import io
import sys
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from regard.data import lines
from regard.data.address import Address, write_address
from regard.errors import UsageError


def is_standard(path: Path) -> bool:
    """Whether `path` is `-`, which stands for stdin or stdout."""
    return str(path) == "-"


@contextlib.contextmanager
def reading(path: Path) -> Iterator[Iterator[str]]:
    """The lines of an input as text; opened at once, read as they are asked for."""
    if not is_standard(path):
        with lines.open_file(path, again=False) as handle:
            yield _texts(handle, str(path))
    elif sys.stdin is None:
        raise UsageError("stdin is closed; name a file with -i")
    else:
        yield _texts(typing.cast(io.BufferedReader, sys.stdin.buffer), "stdin")


def _texts(handle: io.BufferedReader, name: str) -> Iterator[str]:
    with lines.reading(name):
        stream = gzip.GzipFile(fileobj=handle) if lines.is_gzip(handle) else handle
        for number, raw in enumerate(lines.stripped(stream, name), 1):
            yield lines.decode(raw, name, number)


@contextlib.contextmanager
def writing(path: Path) -> Iterator[Callable[[str], None]]:
    """A function that writes one line at once, so that whoever reads us waits for nothing."""
    if is_standard(path):
        if sys.stdout is None:
            raise UsageError("stdout is closed; name a file with -o")
        yield _writer(sys.stdout.buffer, flush=True)
        return
    with _opened(path) as handle:
        if path.suffix == ".gz":
            with gzip.GzipFile(filename="", fileobj=handle, mode="wb", mtime=0) as zipped:
                yield _writer(zipped, flush=False)
        else:
            yield _writer(handle, flush=not isinstance(path, Address))


def _opened(path: Path) -> contextlib.AbstractContextManager[BinaryIO]:
    if isinstance(path, Address):
        return write_address(path)
    try:
        return path.open("wb")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error


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
