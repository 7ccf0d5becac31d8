"""XLIFF 1.2 and 2: the target of every unit is made from its source; what people translated stays.

A unit with a target that says something is left alone, and so is one that is not to be translated.
"""

from collections.abc import Sequence

from regard.errors import DataError
from regard.files.nodes import Content, Node, Shape, read_xml, write_xml

_GROUPS = frozenset(("g", "mrk", "pc"))


def _name(node: Node) -> str:
    return str(node.tag).rpartition("}")[2]


class Xliff:
    """An .xlf."""

    def __init__(self, data: bytes) -> None:
        self._root = read_xml(data)
        if _name(self._root) != "xliff":
            raise DataError(f"it is a <{_name(self._root)[:40]}>, not XLIFF")
        shape = Shape(lambda node: _name(node) in _GROUPS)
        self._contents: list[Content] = []
        for unit in self._root.iter("{*}trans-unit", "{*}segment"):
            source, target = unit.find("{*}source"), unit.find("{*}target")
            kept = any(node.get("translate") == "no" for node in (unit, *unit.iterancestors()))
            if source is None or kept or (target is not None and "".join(target.itertext()).strip()):
                continue
            content = Content(source, shape)
            if content.worth:
                self._contents.append(content)
        self.segments = [content.html for content in self._contents]

    def written(self, texts: Sequence[str]) -> bytes:
        """The file with its targets."""
        for content, text in zip(self._contents, texts, strict=True):
            source = content.node
            target = source.getparent().find("{*}target")
            if target is None:
                target = source.makeelement(source.tag[: -len("source")] + "target")
                target.tail = source.tail
                source.addnext(target)
            content.write(text, into=target)
        return write_xml(self._root)
