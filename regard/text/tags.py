"""HTML in pieces: tags, text, comments, scripts, each exactly as it was written.

The pieces joined are the text. Every search goes forward from where the last one ended, so that twice the
text takes twice the time, whatever is in it: what never ends (a comment, a tag, a quoted value) is looked
for once, and then the rest is text. Before this file: the request; after it: `markup.py`.
"""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass

_SCRIPTS = frozenset(("script", "style"))  # what they hold is no HTML
_BEGIN = re.compile(r"<(?:(?P<tag>/?)(?P<name>[A-Za-z][^\s/>]*)|(?P<aside>!--|!|\?|/))")
_STEP = re.compile(r"""=\s*(?P<quote>["'])|>""")  # in a tag: a value that may hold anything, or the end
_NUMBER = re.compile(r"&#(?:0*([0-9]{8,})|[xX]0*([0-9a-fA-F]{7,}));?")  # no character has such a number


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of the text."""

    kind: str  # text, opening, closing, aside (a comment, a declaration), script (what one holds)
    raw: str
    name: str = ""  # of a tag, in small letters
    closed: bool = False  # it is its own partner: <br/>


def pieces(text: str) -> Iterator[Piece]:
    """The text in its order.

    >>> [(piece.kind, piece.raw) for piece in pieces('a <b>c</b><!-- d -->')]
    [('text', 'a '), ('opening', '<b>'), ('text', 'c'), ('closing', '</b>'), ('aside', '<!-- d -->')]
    """
    said = at = 0  # where the text begins that was not given yet, and where to look on
    while begin := _BEGIN.search(text, at):
        end = _end(text, begin)
        if end is None:
            break
        if begin.start() > said:
            yield Piece("text", text[said : begin.start()])
        raw = text[begin.start() : end]
        said = at = end
        if begin["aside"]:
            yield Piece("aside", raw)
            continue
        name = begin["name"].lower()
        kind = "closing" if begin["tag"] else "opening"
        yield Piece(kind, raw, name, closed=raw.endswith("/>") and kind == "opening")
        if kind == "opening" and name in _SCRIPTS and not raw.endswith("/>"):
            close = re.compile(rf"</{name}(?=[\s/>])", re.IGNORECASE).search(text, at)
            said = at = close.start() if close else len(text)
            if at > end:
                yield Piece("script", text[end:at])
    if said < len(text):
        yield Piece("text", text[said:])


def _end(text: str, begin: re.Match[str]) -> int | None:
    """Where that which begins here ends; None where it never does."""
    if begin["aside"] == "!--":
        end = text.find("-->", begin.end())
        return end + 3 if end >= 0 else None
    at = begin.end()
    if begin["aside"]:
        end = text.find(">", at)
        return end + 1 if end >= 0 else None
    while step := _STEP.search(text, at):
        if step["quote"] is None:
            return step.end()
        closing = text.find(step["quote"], step.end())
        at = closing + 1 if closing >= 0 else step.end()  # a quote without its partner is a character
    return None


def meant(raw: str) -> str:
    """The characters that a text with references (`&amp;`) stands for.

    >>> meant("5 &lt; 6 &#x41; &#99999999999;")
    '5 < 6 A �'
    """
    return html.unescape(_NUMBER.sub("\ufffd", raw)) if "&" in raw else raw
