"""Words of a glossary in a text: each becomes an element whose translation is given.

A term is matched as whole words, with its case, or with a capital first letter where the term has a small
one; longer terms win. The model translates the sentence as it stands, so that the words around a term are
right; then what was written for the term, by the alignment, is replaced (by `placing.py` of the task).
Placeholders in the source were the other way: a model that has never seen one copies it badly.

The terms are a tree of characters: what a place in the text costs is the length of a term, however many
there are.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from typing import Any

from regard.text.elements import Element
from regard.text.sentences import Span

_END = ""  # in the tree: a term ends here


class Glossary:
    """Terms and what they must become, ready to be looked for."""

    def __init__(self, terms: Mapping[str, str]) -> None:
        forms = [_capital(term, wanted) for term, wanted in terms.items() if term[:1].islower()]
        self._known = dict(forms) | dict(terms)
        self._tree: dict[str, Any] = {}
        for term in self._known:
            node = self._tree
            for character in term:
                node = node.setdefault(character, {})
            node[_END] = True

    def terms(self, text: str, elements: Sequence[Element] = ()) -> list[Element]:
        """The terms in `text`; one that a tag begins or ends in, or that is fixed already, is left alone.

        >>> [(e.start, e.end, e.fixed) for e in Glossary({"cat": "Kater"}).terms("Cats and the cat")]
        [(13, 16, 'Kater')]
        """
        if not self._known:
            return []
        taken = _Taken(elements)
        found, at = [], 0
        while at < len(text):
            end = self._match(text, at) if text[at] in self._tree else at
            if end > at and taken.free((at, end)):
                found.append(Element(at, end, fixed=self._known[text[at:end]]))
            at = max(at + 1, end)
        return found

    def _match(self, text: str, at: int) -> int:
        """Where the longest term ends that begins here; `at` where none does."""
        if at and text[at].isalnum() and _in_word(text[at - 1]):
            return at
        node, end = self._tree, at
        for place in range(at, len(text)):
            node = node.get(text[place], {})
            if _END in node and not (
                text[place].isalnum() and place + 1 < len(text) and _in_word(text[place + 1])
            ):
                end = place + 1
            if not node:
                break
        return end


def _capital(term: str, wanted: str) -> tuple[str, str]:
    """A term at the beginning of a sentence."""
    return term[0].upper() + term[1:], wanted[:1].upper() + wanted[1:]


def _in_word(character: str) -> bool:
    return character.isalnum() or character == "_"


class _Taken:
    """Where terms may not stand."""

    def __init__(self, elements: Sequence[Element]) -> None:
        self._edges = sorted({edge for each in elements for edge in each.span})
        fixed = sorted(each.span for each in elements if each.fixed is not None)
        self._starts, self._ends = [start for start, _ in fixed], [end for _, end in fixed]

    def free(self, span: Span) -> bool:
        """Whether no tag begins or ends inside, and nothing that is fixed shares a character."""
        if bisect_right(self._edges, span[0]) < bisect_left(self._edges, span[1]):
            return False
        return bisect_right(self._ends, span[0]) >= bisect_left(self._starts, span[1])
