"""The lines of a file as bytes and as text, with all that can be wrong with them.

A line ends at the byte "\\n" and nowhere else, so U+2028 and U+0085 stay inside it. Files may be
plain or gzip, told apart by their first bytes. After this file: `corpus.py`, `regard.cli.streams`.
"""

import codecs
import csv
import gzip
import io
import itertools
import stat
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, NoReturn

from regard.data.address import Address, open_address
from regard.errors import DataError, StorageError
from regard.foreign import LONGEST_LINE

_GZIP_MAGIC = b"\x1f\x8b"
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class Fault(NamedTuple):
    """Something in a file that training refuses: `kind` is encoding, columns or misaligned."""

    kind: str
    path: Path
    line: int
    message: str


OnFault = Callable[[Fault], None]


def refuse(fault: Fault) -> NoReturn:
    """Take no fault."""
    raise DataError(fault.message)


def read_lines(path: Path) -> Generator[bytes, None, None]:
    """The lines of a plain or gzip file as bytes, without line ends and without a leading BOM.

    Whoever may leave it before its end closes it: a traceback would hold the file open until it is collected.
    """
    with reading(str(path)), open_file(path, again=True) as handle:
        zipped = is_gzip(handle)
        # The outer buffer makes iterating over gzip lines several times quicker.
        stream = io.BufferedReader(gzip.GzipFile(fileobj=handle), 1 << 16) if zipped else handle
        yield from stripped(stream, str(path))


def stripped(stream: io.BufferedIOBase, name: str) -> Iterator[bytes]:
    """Lines without their ends, the first without a BOM; none is longer than LONGEST_LINE.

    A zipped gigabyte of one letter is a small file; no more of it than that is ever held.
    """
    for number in itertools.count(1):
        raw = stream.readline(LONGEST_LINE + 1)
        if len(raw) > LONGEST_LINE:
            raise DataError(
                f"{name} line {number} has more than {LONGEST_LINE:,} bytes; is this a text file?"
            )
        if not raw:
            return
        raw = raw.rstrip(b"\r\n")
        yield raw.removeprefix(codecs.BOM_UTF8) if number == 1 else raw


def is_gzip(handle: io.BufferedReader) -> bool:
    """Whether what comes is zipped; nothing is taken."""
    return handle.peek(2)[:2] == _GZIP_MAGIC


def open_file(path: Path, *, again: bool) -> io.BufferedReader:
    """`path` opened for bytes; one that is to be read again must be a regular file, which a pipe is not."""
    if isinstance(path, Address):
        return open_address(path)
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise DataError(f"{path} is a directory; give a text file")
        if again and not stat.S_ISREG(mode):
            raise DataError(f"{path} is not a regular file, and it is read more than once; save it first")
        return path.open("rb")
    except FileNotFoundError:
        raise DataError(f"{path} does not exist; check the path") from None
    except OSError as error:
        raise DataError(f"cannot open {path}: {error.strerror}") from error


@contextmanager
def reading(name: str) -> Iterator[None]:
    """What can go wrong between the disk and the bytes, as our errors."""
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{name} is a truncated or damaged gzip file ({error}); make it again") from error
    except OSError as error:
        raise StorageError(f"cannot read {name}: {error.strerror or error}") from error


def decode(raw: bytes, path: Path | str, line: int, on_fault: OnFault = refuse) -> str:
    """The text of a line; strict UTF-8 without NUL."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        hint = "it looks like UTF-16" if line == 1 and raw.startswith(_UTF16_MARKS) else error.reason
        where = f"{path} line {line}: byte {error.start + 1} (0x{raw[error.start]:02x}) is not UTF-8"
        on_fault(Fault("encoding", Path(path), line, f"{where}, {hint}; convert the file to UTF-8"))
        text = raw.decode("utf-8", "replace")
    if "\0" in text:
        on_fault(
            Fault("encoding", Path(path), line, f"{path} line {line}: holds a NUL byte; is this a text file?")
        )
        text = text.replace("\0", "\ufffd")
    return text


def cells_of(text: str, path: Path, number: int, delimiter: str = ",") -> list[str]:
    """The cells of a line of a table; one that csv cannot read is refused by its number.

    >>> cells_of('a.png,"cats, dogs"', Path("list.csv"), 1)
    ['a.png', 'cats, dogs']
    """
    try:
        return next(csv.reader([text], delimiter=delimiter))
    except csv.Error as error:
        raise DataError(f"{path} line {number} is no line of a table ({error}); mend it") from None
