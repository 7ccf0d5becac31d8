"""A file that people translate: segments of text out of it, and the file again with others in their place.

One protocol for every format: `segments` are HTML (tags are what hangs on words), `written` takes as many
translations. Nothing but the text changes. Before this file: bytes, from a disk or a client; after it: the
command line and the server, which translate the segments in between.
"""

from collections.abc import Sequence
from importlib import import_module
from pathlib import PurePath
from typing import Protocol

from regard.errors import DataError, UsageError

MOST = 2**26  # bytes of a file, packed or not; what an archive unpacks to is bounded by `archive.py`


class Opened(Protocol):
    """A file that was read."""

    segments: Sequence[str]

    def written(self, texts: Sequence[str]) -> bytes:
        """The file with these texts in the place of its segments."""
        ...


class Reader(Protocol):
    """What reads a format; DataError for what is none."""

    def __call__(self, data: bytes) -> Opened: ...


FORMATS = {  # by the ending of a name: who reads it
    "txt": "regard.files.plain:Plain",
    "md": "regard.files.markdown:Markdown",
    "markdown": "regard.files.markdown:Markdown",
    "html": "regard.files.page:Page",
    "htm": "regard.files.page:Page",
    "xhtml": "regard.files.page:Page",
    "srt": "regard.files.subtitles:Srt",
    "vtt": "regard.files.subtitles:Vtt",
    "po": "regard.files.catalogue:Catalogue",
    "xliff": "regard.files.xliff:Xliff",
    "xlf": "regard.files.xliff:Xliff",
    "docx": "regard.files.office:Docx",
    "pptx": "regard.files.office:Pptx",
    "odt": "regard.files.office:Odt",
    "epub": "regard.files.epub:Epub",
}


def format_of(name: str) -> str | None:
    """The format that a name says; None where it says none.

    >>> format_of("film.SRT"), format_of("train.en")
    ('srt', None)
    """
    ending = PurePath(name).suffix.lower().removeprefix(".")
    return ending if ending in FORMATS else None


def open_data(data: bytes, form: str, name: str) -> Opened:
    """The file in these bytes; whatever is wrong with it is a DataError that names it."""
    if form not in FORMATS:
        raise UsageError(f"format ({form}) must be one of {', '.join(FORMATS)}")
    if len(data) > MOST:
        raise DataError(f"{name} has more than {MOST:,} bytes; translate parts of it")
    module, _, reader = FORMATS[form].partition(":")
    read: Reader = getattr(import_module(module), reader)
    try:
        return read(data)
    except DataError as error:
        raise DataError(f"{name}: {error}") from error
    except RecursionError as error:
        raise DataError(f"{name} is nested too deeply") from error


def text_of(data: bytes) -> str:
    """The text in bytes of UTF-8 or UTF-16, which begins with its mark; the mark stays."""
    for mark, encoding in ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"), (b"", "utf-8")):
        if data.startswith(mark):
            try:
                return data.decode(encoding)
            except UnicodeDecodeError as error:
                raise DataError(f"byte {error.start} is no {encoding}; save it as UTF-8") from error
    raise AssertionError


def bytes_of(text: str, like: bytes) -> bytes:
    """The text in the encoding of those bytes."""
    for mark, encoding in ((b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be")):
        if like.startswith(mark):
            return text.encode(encoding, "replace")
    return text.encode("utf-8", "replace")


class Parts:
    """Base of formats that are text: what is kept, and segments, in their order."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._parts: list[str | int] = []  # what is kept, and the numbers of segments
        self.segments: list[str] = []

    def keep(self, text: str) -> None:
        """What comes next is kept."""
        self._parts.append(text)

    def segment(self, html: str) -> None:
        """What comes next is to be translated."""
        self._parts.append(len(self.segments))
        self.segments.append(html)

    def shown(self, number: int, html: str) -> str:
        """The translation of a segment, as it stands in the file."""
        raise NotImplementedError

    def written(self, texts: Sequence[str]) -> bytes:
        """The file again."""
        shown = [self.shown(number, text) for number, text in enumerate(texts)]
        return bytes_of(
            "".join(shown[part] if isinstance(part, int) else part for part in self._parts), self._data
        )
