"""HTML as text with elements on it: what is to be translated, and what is kept as it was written.

Tags that end a paragraph part the text into runs; scripts, styles, comments and the like are kept. Tags
inside a run become elements over its characters. `translate="no"`, class `notranslate` and code are fixed.
Nothing is repaired: a tag without its partner stays where it stood. Before this file: `tags.py`; after
it: `regard.tasks.translation.document`.
"""

import re
from collections import Counter
from dataclasses import dataclass, field

from regard.text.elements import Element
from regard.text.tags import Piece, meant, pieces

_LINE_TAGS = (
    "a abbr acronym b bdi bdo big cite data del dfn em font i ins label mark q rp rt ruby s small span "
    "strike strong sub sup time u"
)
_INLINE = frozenset(_LINE_TAGS.split())  # any other tag ends a line
_VOID = frozenset(("img", "input", "wbr"))
_KEPT = frozenset(("code", "kbd", "math", "pre", "samp", "svg", "tt", "var"))
_NO = re.compile(r"""\btranslate\s*=\s*["']?no\b|\bclass\s*=\s*["'][^"']*\bnotranslate\b""", re.IGNORECASE)


@dataclass
class Run:
    """Text between the tags that end a paragraph."""

    text: str = ""
    elements: list[Element] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Open:
    name: str
    start: int
    tag: str
    order: int


class _Reader:
    """Sorts what it meets into runs and what is kept."""

    def __init__(self) -> None:
        self.parts: list[str | Run] = []
        self.texts: list[str] = []  # of the run that is being read
        self.size = 0  # characters of them
        self.elements: list[Element] = []
        self.open: list[_Open] = []
        self.names: Counter[str] = Counter()  # of the tags that are open
        self.kept: list[str] | None = None  # what a fixed element has held so far
        self.depth = 0  # tags of its name that are open inside it, its own with them
        self.plain: list[str] = []  # its words
        self.count = 0

    def read(self, piece: Piece) -> None:
        """The next piece of the document."""
        self.count += piece.kind != "text"
        if piece.kind == "text":
            self._text(piece.raw)
        elif self.kept is not None:
            self._inside_fixed(piece)
        elif piece.kind == "aside":
            self._mark(piece.raw)
        elif piece.kind == "script":
            self._end_run(piece.raw)
        elif piece.kind == "opening":
            self._opening(piece)
        elif piece.name in _INLINE or piece.name in _KEPT:
            self._close(piece)
        else:
            self._end_run(piece.raw)

    def _opening(self, piece: Piece) -> None:
        if piece.closed:
            known = piece.name in _INLINE or piece.name in _VOID
            self._mark(piece.raw) if known else self._end_run(piece.raw)
        elif (piece.name in _KEPT or _NO.search(piece.raw)) and piece.name not in ("html", "body", *_VOID):
            self._begin(piece)
            self.kept, self.plain, self.depth = [], [], 1
        elif piece.name in _INLINE:
            self._begin(piece)
        elif piece.name in _VOID:
            self._mark(piece.raw)
        else:
            self._end_run(piece.raw)

    def _begin(self, piece: Piece) -> None:
        self.open.append(_Open(piece.name, self.size, piece.raw, self.count))
        self.names[piece.name] += 1

    def _text(self, raw: str) -> None:
        words = meant(raw)
        if self.kept is None:
            self._say(words)
        else:
            self.kept.append(raw)
            self.plain.append(words)

    def _say(self, words: str) -> None:
        self.texts.append(words)
        self.size += len(words)

    def _inside_fixed(self, piece: Piece) -> None:
        """What is inside a fixed element is kept as it is."""
        assert self.kept is not None
        if piece.name == self.open[-1].name and not piece.closed:
            self.depth += {"opening": 1, "closing": -1}.get(piece.kind, 0)
        if self.depth:
            self.kept.append(piece.raw)
        else:
            self._close_fixed(piece.raw)

    def _close_fixed(self, raw: str) -> None:
        begun, words, content = self._pop(), "".join(self.plain), "".join(self.kept or ())
        self.kept = None
        if not words.strip():
            self._mark(begun.tag + content + raw)
            return
        self._say(words)
        self._add(Element(begun.start, self.size, begun.tag, raw, content, (begun.order, self.count)))

    def _pop(self) -> _Open:
        begun = self.open.pop()
        self.names[begun.name] -= 1
        return begun

    def _close(self, piece: Piece) -> None:
        if not self.names[piece.name]:
            self._mark(piece.raw)
            return
        while self.open[-1].name != piece.name:  # it was never closed
            self._lose(self._pop())
        begun = self._pop()
        self._add(Element(begun.start, self.size, begun.tag, piece.raw, order=(begun.order, self.count)))

    def _lose(self, lost: _Open) -> None:
        """A tag without a partner."""
        self._add(Element(lost.start, lost.start, lost.tag, order=(lost.order, lost.order)))

    def _add(self, element: Element) -> None:
        self.elements.append(element)

    def _mark(self, raw: str) -> None:
        """Something between words."""
        self._add(Element(self.size, self.size, raw, order=(self.count, self.count)))

    def _end_run(self, raw: str) -> None:
        for lost in self.open:
            self._lose(lost)
        self.open = []
        self.names.clear()
        if self.texts or self.elements:
            self.parts.append(Run("".join(self.texts), self.elements))
        self.parts.append(raw)
        self.texts, self.elements, self.size = [], [], 0

    def finish(self) -> list[str | Run]:
        """Everything, once all is read."""
        if self.kept is not None:  # a fixed element that was never closed
            self.count += 1
            self._close_fixed("")
        self._end_run("")
        return [part for part in self.parts if part != ""]


def runs(text: str) -> list[str | Run]:
    """The text in its order: what is kept as strings, what is to be translated as runs.

    >>> [part if isinstance(part, str) else part.text for part in runs("<p>a <b>big</b> dog</p>")]
    ['<p>', 'a big dog', '</p>']
    """
    reader = _Reader()
    for piece in pieces(text):
        reader.read(piece)
    return reader.finish()
