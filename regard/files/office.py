"""Word, PowerPoint and OpenDocument texts: paragraphs out of the XML of an archive, and back into it.

A paragraph is a segment; its runs are what hangs on its words. Pictures, fields, formulas, notes' marks and
line breaks inside it are marks between words. Styles, layout and everything else are kept.
"""

import re
from collections.abc import Sequence

from regard.errors import DataError
from regard.files.archive import Archive
from regard.files.nodes import Content, Node, Shape, contents, read_xml, write_xml

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_T = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"


class _Office:
    """An archive some of whose members hold paragraphs."""

    members: re.Pattern[str]
    paragraphs: Sequence[str]
    shape: Shape

    def __init__(self, data: bytes) -> None:
        self._archive = Archive(data)
        names = [name for name in self._archive.names if self.members.fullmatch(name)]
        if not names:
            raise DataError("it holds no text where such a file has it")
        self._roots: dict[str, Node] = {name: read_xml(self._archive.read(name)) for name in sorted(names)}
        self._contents: list[Content] = []
        for root in self._roots.values():
            self._contents += contents(root, self.paragraphs, self.shape)
        self.segments = [content.html for content in self._contents]

    def written(self, texts: Sequence[str]) -> bytes:
        """The archive with other words."""
        for content, text in zip(self._contents, texts, strict=True):
            content.write(text)
        return self._archive.written({name: write_xml(root) for name, root in self._roots.items()})


def _in_word(node: Node) -> bool:
    return node.tag in _WORD_GROUPS and (node.tag != f"{_W}r" or node.find(f"{_W}t") is not None)


_WORD_GROUPS = frozenset(_W + name for name in ("r", "hyperlink", "ins", "smartTag"))


class Docx(_Office):
    """Word."""

    members = re.compile(r"word/(?:document|header\d*|footer\d*|footnotes|endnotes|comments)\.xml")
    paragraphs = (f"{_W}p",)
    shape = Shape(
        _in_word,
        text=f"{_W}t",
        runs=f"{_W}r",
        heads=frozenset((f"{_W}pPr", f"{_W}rPr")),
        dropped=frozenset((f"{_W}proofErr", f"{_W}lastRenderedPageBreak")),
    )


class Pptx(_Office):
    """PowerPoint."""

    members = re.compile(r"ppt/(?:slides/slide|notesSlides/notesSlide|diagrams/data)\d+\.xml")
    paragraphs = (f"{_A}p",)
    shape = Shape(
        lambda node: bool(node.tag == f"{_A}r"),
        text=f"{_A}t",
        runs=f"{_A}r",
        heads=frozenset((f"{_A}pPr", f"{_A}rPr")),
    )


class Odt(_Office):
    """OpenDocument."""

    members = re.compile(r"(?:content|styles)\.xml")
    paragraphs = (f"{_T}p", f"{_T}h")
    shape = Shape(lambda node: node.tag in (f"{_T}span", f"{_T}a", f"{_T}meta"))
