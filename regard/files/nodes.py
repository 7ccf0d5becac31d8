"""XML of strangers: read without entities, and the content of a paragraph as a segment and back.

A format says which elements group words (a run, a link), which hold them, and which come first; whatever else
stands in a paragraph is a mark between words. Before this file: `archive.py`; after it: the formats.
"""

import re
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from regard.errors import DataError, UsageError
from regard.files.inline import Marks, guarded

DEPTH = 200  # of elements in elements
SPACE = "{http://www.w3.org/XML/1998/namespace}space"
_IMPOSSIBLE = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # in XML
Node = Any  # an element of lxml, which has no types


def require_lxml() -> Any:
    """lxml, which keeps prefixes, comments and order as they came."""
    try:
        from lxml import etree
    except ImportError as error:
        raise UsageError('this format needs lxml: pip install "regard[files]"') from error
    return etree


def read_xml(data: bytes) -> Node:
    """The tree in these bytes; DataError for one that is broken, or that declares entities."""
    etree = require_lxml()
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, dtd_validation=False, huge_tree=False
    )
    try:
        root = etree.fromstring(data, parser)
    except (etree.XMLSyntaxError, ValueError) as error:
        raise DataError(f"it is no XML: {str(error).splitlines()[0][:120]}") from error
    declared = root.getroottree().docinfo.internalDTD
    if declared is not None and (list(declared.iterentities()) or declared.external_id is None):
        raise DataError("it declares entities, which are not read")
    return root


def write_xml(root: Node) -> bytes:
    """The tree with its declaration, as it came."""
    tree = root.getroottree()
    info = tree.docinfo
    found: bytes = require_lxml().tostring(
        tree, xml_declaration=True, encoding=info.encoding or "UTF-8", standalone=info.standalone
    )
    return found


@dataclass(frozen=True)
class Shape:
    """How a format writes a paragraph."""

    groups: Callable[[Node], bool]  # it holds words, or what holds them
    text: str = ""  # the element whose text is words; nothing: words stand between elements
    runs: str = ""  # the group that such an element must stand in
    heads: frozenset[str] = frozenset()  # they stay first, and are no part of the words
    dropped: frozenset[str] = frozenset()  # traces of a program that mean nothing after translation


class Content:
    """What stands in one paragraph."""

    def __init__(self, node: Node, shape: Shape) -> None:
        self.node, self.shape = node, shape
        self._marks: Marks[Any] = Marks()
        self._tidy(node)
        self.html = self._melted(node, 0)

    @property
    def worth(self) -> bool:
        """Whether there is a word in it."""
        words = "".join(text for kind, _, text in self._marks.tokens(self.html) if kind == "text")
        return any(map(str.isalpha, words))

    def _tidy(self, node: Node) -> None:
        """Without traces, and with neighbours joined that look the same."""
        for child in list(node):
            if child.tag in self.shape.dropped and not (child.tail or "").strip():
                node.remove(child)
        before = None
        for child in list(node):
            if (
                before is not None
                and child.tag == self.shape.runs == before.tag
                and self._alike(before, child)
            ):
                for part in [part for part in child if part.tag not in self.shape.heads]:
                    before.append(part)
                node.remove(child)
            else:
                before = child

    def _alike(self, one: Node, other: Node) -> bool:
        write = require_lxml().tostring
        heads = [[write(part) for part in run if part.tag in self.shape.heads] for run in (one, other)]
        return heads[0] == heads[1] and dict(one.attrib) == dict(other.attrib)

    def _melted(self, node: Node, depth: int) -> str:
        if depth > DEPTH:
            raise DataError("it is nested too deeply")
        mixed = not self.shape.text
        found = [self._words(node.text)] if mixed else []
        for child in node:
            if child.tag in self.shape.heads:
                pass
            elif child.tag == self.shape.text and self.shape.text:
                found.append(self._words(child.text))
            elif isinstance(child.tag, str) and self.shape.groups(child):
                found.append(self._marks.around(child, self._melted(child, depth + 1)))
            else:
                found.append(self._marks.between(child))
            if mixed:
                found.append(self._words(child.tail))
        return "".join(found)

    def _words(self, text: str | None) -> str:
        return guarded(text or "", self._marks)

    def write(self, html: str, into: Node | None = None) -> None:
        """Put a translation in the place of what stands there, or into another element."""
        node = self.node if into is None else into
        _emptied(node, self.shape)
        above = [node]
        last = next((thing for thing in self._marks.things if _tag(thing) == self.shape.runs), None)
        for kind, thing, text in self._marks.tokens(html):
            if kind == "open" and thing is not None:
                group = deepcopy(thing)
                group.tail = None
                _emptied(group, self.shape)
                above[-1].append(group)
                above.append(group)
                last = group if group.tag == self.shape.runs else last
            elif kind == "close" and len(above) > 1:
                above.pop()
            elif kind == "mark" and isinstance(thing, str):
                self._say(above[-1], thing, last)
            elif kind == "mark" and thing is not None:
                mark = deepcopy(thing)
                mark.tail = None
                above[-1].append(mark)
            elif kind == "text" and text:
                self._say(above[-1], text, last)

    def _say(self, node: Node, text: str, last: Node | None) -> None:
        """Words at the end of an element."""
        text = _IMPOSSIBLE.sub("", text)
        if not text:
            return
        if not self.shape.text:
            if len(node):
                node[-1].tail = (node[-1].tail or "") + text
            else:
                node.text = (node.text or "") + text
            return
        if node.tag != self.shape.runs:  # a blank between two runs
            run = deepcopy(last) if last is not None else node.makeelement(self.shape.runs)
            _emptied(run, self.shape)
            run.tail = None
            node.append(run)
            node = run
        if len(node) and node[-1].tag == self.shape.text:
            node[-1].text = (node[-1].text or "") + text
        else:
            held = node.makeelement(self.shape.text)
            held.text = text
            node.append(held)
        if node[-1].text != node[-1].text.strip() and "wordprocessingml" in self.shape.text:
            node[-1].set(SPACE, "preserve")


def _tag(thing: Any) -> str:
    return "" if isinstance(thing, str) else str(thing.tag)


def _emptied(node: Node, shape: Shape) -> None:
    """Without its content; heads stay."""
    heads = [child for child in node if child.tag in shape.heads]
    attributes = dict(node.attrib)
    tail = node.tail
    node.clear()
    for name, value in attributes.items():
        node.set(name, value)
    node.tail = tail
    for head in heads:
        head.tail = None
        node.append(head)


def contents(root: Node, paragraphs: Sequence[str], shape: Shape) -> list[Content]:
    """The paragraphs of a tree that hold words, the inner ones of nested paragraphs left to the outer."""
    found = []
    for node in list(root.iter(*paragraphs)):
        if next(node.iterancestors(*paragraphs), None) is None:
            content = Content(node, shape)
            if content.worth:
                found.append(content)
    return found
