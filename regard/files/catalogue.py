"""Messages of programs (gettext's PO): what has no translation yet gets one, with Babel's reader and writer.

What people translated stays; a new one is marked fuzzy, as gettext marks what a person has not seen. What a
program fills in (`%s`, `{name}`) is kept. The head of the file stays to the letter: Babel would leave out
what it does not know in it, and make up a team.
"""

import io
import re
from collections.abc import Sequence
from typing import Any

from babel.messages.pofile import PoFileError, read_po, write_po

from regard.errors import DataError
from regard.files.file import text_of
from regard.files.inline import Marks, back, guarded

# Comments and blank lines, then the message without a text.
_HEAD = re.compile(
    r"\ufeff?(?:[ \t]*(?:#(?!~)[^\n]*)?\n)*"
    r'msgid[ \t]+""[ \t\r]*\nmsgstr[ \t]+"[^\n]*(?:\n[ \t]*"[^\n]*)*'
)
_FOUND = ("python-format", "python-brace-format")  # what Babel says of a message by its looks
_BROKEN = (PoFileError, ValueError, LookupError, TypeError, AttributeError, SyntaxError)


class Catalogue:
    """A .po."""

    def __init__(self, data: bytes) -> None:
        text = text_of(data)
        head = _HEAD.match(text)
        self._head = head[0] if head else None
        try:
            self._catalogue = read_po(io.BytesIO(data), abort_invalid=True)
        except _BROKEN as error:
            reason = str(error).partition("\n")[0][:120]
            raise DataError(f"it is no catalogue of messages: {reason}") from error
        for message in self._catalogue:
            message.flags -= {flag for flag in _FOUND if flag not in text}
        self._messages = [each for each in self._catalogue if each.id and not any(_forms(each.string))]
        self._marks: list[Marks[Any]] = []
        self.segments: list[str] = []
        for message in self._messages:
            sources = _forms(message.id)
            for number in range(self._count(message)):
                self._marks.append(Marks())
                source = sources[min(number, len(sources) - 1)]
                lines = [guarded(line, self._marks[-1]) for line in source.split("\n")]
                self.segments.append("<br>".join(lines))

    def _count(self, message: Any) -> int:
        """Forms of its translation: one, or as many as the language has plurals."""
        return self._catalogue.num_plurals if isinstance(message.id, tuple | list) else 1

    def written(self, texts: Sequence[str]) -> bytes:
        """The catalogue with its messages."""
        waiting = iter([back(text, marks) for text, marks in zip(texts, self._marks, strict=True)])
        for message in self._messages:
            found = [next(waiting) for _ in range(self._count(message))]
            message.string = tuple(found) if isinstance(message.id, tuple | list) else found[0]
            message.flags.add("fuzzy")
        out = io.BytesIO()
        if self._head is not None:
            out.write(f"{self._head}\n\n".replace("\r", "").encode())  # `text_of` read UTF-8
        write_po(out, self._catalogue, omit_header=self._head is not None)
        return out.getvalue()


def _forms(text: Any) -> list[str]:
    """A message's forms, singular and plural."""
    return list(text) if isinstance(text, tuple | list) else [text]
