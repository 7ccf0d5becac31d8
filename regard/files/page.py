"""HTML: the page is one segment, for what translates it knows tags (`regard.text.markup`)."""

from collections.abc import Sequence

from regard.files.file import bytes_of, text_of


class Page:
    """An .html."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.segments = [text_of(data)]

    def written(self, texts: Sequence[str]) -> bytes:
        """As it came."""
        return bytes_of(texts[0], self._data)
