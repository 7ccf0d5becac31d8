"""Plain text: every line by itself, with the blanks around it kept."""

import html
import re

from regard.files.file import Parts, text_of

_LINE = re.compile(r"(\s*)(.*?)(\s*)", re.DOTALL)


class Plain(Parts):
    """A .txt."""

    def __init__(self, data: bytes) -> None:
        super().__init__(data)
        for line in re.split(r"(?<=\n)|(?<=\r)(?!\n)", text_of(data)):
            found = _LINE.fullmatch(line)
            assert found is not None
            self.keep(found[1])
            if found[2]:
                self.segment(html.escape(found[2], quote=False))
            self.keep(found[3])

    def shown(self, number: int, text: str) -> str:
        """A line has no tags."""
        return html.unescape(text)
