"""Messages of programs (gettext's PO): what has no translation yet gets one, with Babel's reader and writer.

What people translated stays; a new one is marked fuzzy, as gettext marks what a person has not seen. What a
program fills in (`%s`, `{name}`) is kept.
"""

import io
from collections.abc import Sequence
from typing import Any

from babel.messages.pofile import PoFileError, read_po, write_po

from regard.errors import DataError
from regard.files.file import text_of
from regard.files.inline import Marks, back, guarded

_BROKEN = (PoFileError, ValueError, LookupError, TypeError, AttributeError, SyntaxError)


class Catalogue:
    """A .po."""

    def __init__(self, data: bytes) -> None:
        text_of(data)
        try:
            self._catalogue = read_po(io.BytesIO(data), abort_invalid=True)
        except _BROKEN as error:
            reason = str(error).partition("\n")[0][:120]
            raise DataError(f"it is no catalogue of messages: {reason}") from error
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
        write_po(out, self._catalogue)
        return out.getvalue()


def _forms(text: Any) -> list[str]:
    """A message's forms, singular and plural."""
    return list(text) if isinstance(text, tuple | list) else [text]
