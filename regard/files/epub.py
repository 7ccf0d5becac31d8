"""Electronic books: the pages of an archive, and the titles of its table of contents."""

import re
from collections.abc import Sequence

from regard.errors import DataError
from regard.files.archive import Archive
from regard.files.file import bytes_of, text_of

_PAGES = re.compile(r"(?!META-INF/).*\.(?:xhtml|html|htm)", re.IGNORECASE)
_CONTENTS = re.compile(r".*\.ncx", re.IGNORECASE)
_LABEL = re.compile(r"(?<=<text>)[^<>]+(?=</text>)")


class Epub:
    """An .epub."""

    def __init__(self, data: bytes) -> None:
        self._archive = Archive(data)
        self._texts = {
            name: text_of(self._archive.read(name))
            for name in self._archive.names
            if _PAGES.fullmatch(name) or _CONTENTS.fullmatch(name)
        }
        if not self._texts:
            raise DataError("it holds no page; it is no book")
        self.segments = [
            segment for name, text in self._texts.items() for segment in self._segments(name, text)
        ]

    def _segments(self, name: str, text: str) -> list[str]:
        """A page is one, and so is every title."""
        return [text] if _PAGES.fullmatch(name) else _LABEL.findall(text)

    def written(self, texts: Sequence[str]) -> bytes:
        """The book with other words."""
        waiting, changed = iter(texts), {}
        for name, text in self._texts.items():
            page = _PAGES.fullmatch(name)
            found = next(waiting) if page else _LABEL.sub(lambda _: next(waiting), text)
            changed[name] = bytes_of(found, self._archive.read(name))
        return self._archive.written(changed)
