"""HTML as text with elements on it: what is to be translated, and what is kept as it was written.

Tags that end a paragraph part the text into runs; scripts, styles, comments and the like are kept. Tags
inside a run become elements over its characters. `translate="no"`, class `notranslate` and code are fixed.
Nothing is repaired: a tag without its partner stays where it stood. Before this file: the request; after
it: `document.py`.
"""

import html
import re
from dataclasses import dataclass, field
from html.parser import HTMLParser

from regard.serving.elements import Element

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


@dataclass
class _Open:
    name: str
    start: int
    tag: str
    order: int


class _Reader(HTMLParser):
    """Sorts what it meets into runs and what is kept."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=False)
        self.parts: list[str | Run] = []
        self.run = Run()
        self.open: list[_Open] = []
        self.kept: list[str] | None = None  # what a fixed element has held so far
        self.depth: list[str] = []  # tags that are open inside it
        self.plain: list[str] = []  # its words
        self.count = 0

    # What is inside a fixed element is kept as it is.

    def _keep(self, raw: str, words: str = "") -> bool:
        if self.kept is None:
            return False
        self.kept.append(raw)
        self.plain.append(words)
        return True

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        raw = self.get_starttag_text() or ""
        self.count += 1
        if self.kept is not None:
            self._keep(raw)
            if tag == self.depth[0]:
                self.depth.append(tag)
        elif (tag in _KEPT or _NO.search(raw)) and tag not in ("html", "body", *_VOID):
            self.open.append(_Open(tag, len(self.run.text), raw, self.count))
            self.kept, self.plain, self.depth = [], [], [tag]
        elif tag in _INLINE:
            self.open.append(_Open(tag, len(self.run.text), raw, self.count))
        elif tag in _VOID:
            self._mark(raw)
        else:
            self._end_run(raw)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        raw = self.get_starttag_text() or ""
        self.count += 1
        if not self._keep(raw):
            self._mark(raw) if tag in _INLINE | _VOID else self._end_run(raw)

    def handle_endtag(self, tag: str) -> None:
        raw = f"</{tag}>"
        self.count += 1
        if self.kept is not None:
            if tag == self.depth[0]:
                self.depth.pop()
            if self.depth:
                self._keep(raw)
            else:
                self._close_fixed(raw)
        elif tag in _INLINE | _KEPT:
            self._close(tag, raw)
        else:
            self._end_run(raw)

    def _close_fixed(self, raw: str) -> None:
        begun, words, content = self.open.pop(), "".join(self.plain), "".join(self.kept or ())
        self.kept = None
        if not words.strip():
            self._mark(begun.tag + content + raw)
            return
        self.run.text += words
        end, order = len(self.run.text), (begun.order, self.count)
        self.run.elements.append(Element(begun.start, end, begun.tag, raw, content, order))

    def _close(self, tag: str, raw: str) -> None:
        if not self.open or self.open[-1].name != tag:
            if not any(each.name == tag for each in self.open):
                self._mark(raw)
                return
            while self.open[-1].name != tag:  # it was never closed
                lost = self.open.pop()
                self.run.elements.append(Element(lost.start, lost.start, lost.tag, order=(lost.order,) * 2))
        begun = self.open.pop()
        self.run.elements.append(
            Element(begun.start, len(self.run.text), begun.tag, raw, order=(begun.order, self.count))
        )

    def _mark(self, raw: str) -> None:
        """Something between words."""
        place = len(self.run.text)
        self.run.elements.append(Element(place, place, raw, order=(self.count, self.count)))

    def _end_run(self, raw: str) -> None:
        for lost in self.open:
            self.run.elements.append(Element(lost.start, lost.start, lost.tag, order=(lost.order,) * 2))
        self.open = []
        if self.run.text or self.run.elements:
            self.parts.append(self.run)
        self.parts.append(raw)
        self.run = Run()

    def handle_data(self, data: str) -> None:
        if self.cdata_elem:
            self._end_run(data)
        elif not self._keep(data, data):
            self.run.text += data

    def handle_entityref(self, name: str) -> None:
        self._reference(f"&{name};")

    def handle_charref(self, name: str) -> None:
        self._reference(f"&#{name};")

    def _reference(self, raw: str) -> None:
        meant = html.unescape(raw)
        if not self._keep(raw, meant):
            self.run.text += meant

    def handle_comment(self, data: str) -> None:
        self._aside(f"<!--{data}-->")

    def handle_decl(self, decl: str) -> None:
        self._aside(f"<!{decl}>")

    def unknown_decl(self, data: str) -> None:
        self._aside(f"<![{data}]>")

    def handle_pi(self, data: str) -> None:
        self._aside(f"<?{data}>")

    def _aside(self, raw: str) -> None:
        self.count += 1
        if not self._keep(raw):
            self._mark(raw)

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
    reader.feed(text)
    reader.close()
    return reader.finish()
