"""What hangs on the words of a segment, as HTML that every format shares, and back.

A format writes its bold, its holes as `<span id="3">`, `<img id="4">` and `<code id="5">`, with what
they stand for kept here under their number; the translation brings each back once, wherever its words went.
Everything else in the HTML is text. Used by `markdown.py`, `catalogue.py` and `nodes.py`.
"""

import html
import re
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

from regard.text.tags import pieces

Thing = TypeVar("Thing")
_ID = re.compile(r'id="(\d+)"')
# What programs fill in: %s, %(name)s, %1$d, {name}, {{name}}, ${name}.
_HOLES = re.compile(
    r"%(?:\d+\$)?(?:\(\w+\))?[#0 +-]{0,3}\d{0,3}(?:\.\d{1,3})?[hlL]{0,2}[diouxXeEfFgGcrsa@]\b|%%"
    r"|\$?\{\{?[^{}\s]{0,80}\}?\}|(?P<tag></?[A-Za-z][^<>\n]{0,200}>)"
)


class Marks(Generic[Thing]):
    """Things by their number."""

    def __init__(self) -> None:
        self.things: list[Thing] = []

    def _number(self, thing: Thing) -> int:
        self.things.append(thing)
        return len(self.things) - 1

    def around(self, thing: Thing, inner: str) -> str:
        """Something around words."""
        return f'<span id="{self._number(thing)}">{inner}</span>'

    def between(self, thing: Thing) -> str:
        """Something between words."""
        return f'<img id="{self._number(thing)}">'

    def instead(self, thing: Thing, words: str) -> str:
        """Something that is read as a word and kept as it is."""
        return f'<code id="{self._number(thing)}">{html.escape(words, quote=False)}</code>'

    def tokens(self, text: str) -> Iterator[tuple[str, Thing | None, str]]:
        """The HTML in its order: `text` with the text, `open` and `mark` with their thing, `close`."""
        fixed = None  # the thing whose words are being passed over
        for piece in pieces(text):
            found = _ID.search(piece.raw) if piece.kind == "opening" else None
            thing = self.things[int(found[1])] if found and int(found[1]) < len(self.things) else None
            if piece.name == "code":
                fixed = thing if piece.kind == "opening" else None
                if piece.kind == "opening":
                    yield "mark", thing, ""
            elif fixed is not None:
                continue
            elif piece.name == "span":
                yield ("open" if piece.kind == "opening" else "close"), thing, ""
            elif piece.name == "img":
                yield "mark", thing, ""
            elif piece.name == "br":
                yield "text", None, "\n"
            else:
                yield "text", None, html.unescape(piece.raw)


def guarded(text: str, marks: "Marks[Any]") -> str:
    """Text as HTML, with tags in it and what programs fill in kept as they are.

    >>> guarded("%d files < {n}", Marks())
    '<code id="0">%d</code> files &lt; <code id="1">{n}</code>'
    """
    found, at = [], 0
    for hole in _HOLES.finditer(text):
        kept = marks.between(hole[0]) if hole["tag"] else marks.instead(hole[0], hole[0])
        found += [html.escape(text[at : hole.start()], quote=False), kept]
        at = hole.end()
    return "".join([*found, html.escape(text[at:], quote=False)])


def back(text: str, marks: "Marks[Any]") -> str:
    """HTML as plain text; its things are what stands there, or what stands before words and after them."""
    found: list[str] = []
    above: list[str] = []
    for kind, thing, words in marks.tokens(text):
        before, after = thing if isinstance(thing, tuple) else (thing or "", "")
        if kind == "close":
            found.append(above.pop() if above else "")
        else:
            found.append(words if kind == "text" else before)
        if kind == "open":
            above.append(after)
    return "".join([*found, *reversed(above)])
