"""Files that lie elsewhere, in the place of a path: `https://...`, `s3://...`, whatever fsspec opens.

They are read as streams, as often as they are asked for; nothing is kept. After this file: `lines.py`,
`regard.cli.streams`.
"""

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO, cast

from regard.errors import DataError, RegardError, UsageError

_SCHEME = re.compile(r"([a-z][a-z0-9+.:-]*)://")
_PLAIN = "file://"


class Address(type(Path())):  # type: ignore[misc]
    """What stands where a path does and is none: its text is kept as it was given."""

    url: str

    def __new__(cls, url: str) -> "Address":
        made: Address = super().__new__(cls, url)
        made.url = url
        return made

    def __reduce__(self) -> Any:
        return Address, (self.url,)

    def __str__(self) -> str:
        return self.url


def place(given: str | Path) -> Path:
    """A path, or an address where it reads like one.

    >>> place("file:///a/b.txt") == Path("/a/b.txt")
    True
    >>> str(place("https://host//a.gz")), place("https://host//a.gz").suffix
    ('https://host//a.gz', '.gz')
    """
    if isinstance(given, Path):
        return given
    if given.startswith(_PLAIN):
        return Path(given.removeprefix(_PLAIN))
    return Address(given) if _SCHEME.match(given) else Path(given)


class _Raw(io.RawIOBase):
    """What fsspec opened, as Python's own files are; all that goes wrong with it is an OSError."""

    def __init__(self, file: Any) -> None:
        self.file = file

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            data = self.file.read(len(buffer))
        except Exception as error:  # of whatever library is beneath
            raise OSError(f"{type(error).__name__} {error}".strip()) from error
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self.file.close()
        super().close()


def open_address(address: Address) -> io.BufferedReader:
    """Its bytes, from the beginning."""
    return io.BufferedReader(_Raw(_opened(address, "rb")), 1 << 16)


@contextmanager
def write_address(address: Address) -> Iterator[BinaryIO]:
    """A file that is there when the block ends well, as far as the place allows it."""
    file = _opened(address, "wb")
    try:
        yield cast(BinaryIO, file)
    except BaseException:
        with suppress(Exception):
            file.discard()  # not all of them can
        with suppress(AttributeError):
            file.closed = True  # or it would be finished when it is collected
        raise
    try:
        file.close()
    except Exception as error:
        raise DataError(f"cannot write {address}: {_words(error)}") from error


def _opened(address: Address, mode: str) -> Any:
    import fsspec

    verb = "open" if mode == "rb" else "write"
    try:
        return fsspec.open(address.url, mode).open()
    except ImportError as error:
        raise UsageError(
            f"cannot {verb} {address}: {_words(error)}; pip install 'regard[addresses]'"
        ) from error
    except FileNotFoundError:
        raise DataError(f"{address} is not there, or nobody answers; check the address") from None
    except NotImplementedError:
        raise UsageError(f"cannot {verb} {address}: nothing can be written there") from None
    except RegardError:
        raise
    except Exception as error:  # of whatever library is beneath
        raise DataError(f"cannot {verb} {address}: {_words(error)}") from error


def _words(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
