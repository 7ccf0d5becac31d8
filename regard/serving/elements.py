"""What is tied to words of a sentence: a tag around them, or a text that must stand in their place.

`markup.py` and `glossary.py` find them in the source, `document.py` keeps sentences whole around them, and
`placing.py` finds their words again in the translation.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from regard.serving.sentences import Span

UNORDERED = (1 << 62, 1 << 62)  # of what no tag was written for


@dataclass(frozen=True)
class Element:
    """Something over the characters from `start` to `end` of a source text."""

    start: int
    end: int
    opening: str = ""  # a tag, as it was written
    closing: str = ""
    fixed: str | None = None  # what must stand there, ready to be sent; None: the translation
    order: tuple[int, int] = UNORDERED  # places of the two tags in the document

    @property
    def span(self) -> Span:
        """Its characters."""
        return self.start, self.end

    def within(self, span: Span) -> "Element":
        """The part of it in `span`, counted from there."""
        start, end = max(self.start, span[0]), min(self.end, span[1])
        return replace(self, start=start - span[0], end=end - span[0])


def overlaps(one: Span, other: Span) -> bool:
    """Whether two spans share a character."""
    return max(one[0], other[0]) < min(one[1], other[1])


def covers(one: Span, other: Span) -> bool:
    """Whether one span holds all of the other."""
    return one[0] <= other[0] and other[1] <= one[1]


def inside(element: Element, span: Span) -> bool:
    """Whether an element begins or ends among the words of a sentence rather than around them."""
    if element.start == element.end:
        return span[0] < element.start < span[1]
    return overlaps(element.span, span) and not covers(element.span, span)


def merged(spans: Sequence[Span], elements: Iterable[Element]) -> list[Span]:
    """The sentences, those joined that an element begins in one of and ends in another.

    >>> merged([(0, 4), (5, 9), (10, 14)], [Element(2, 7)])
    [(0, 9), (10, 14)]
    """
    whole = list(spans)
    for element in elements:
        held = [number for number, span in enumerate(whole) if overlaps(element.span, span)]
        cut = element.fixed is not None or any(inside(element, whole[number]) for number in held)
        if len(held) > 1 and cut:
            whole[held[0] : held[-1] + 1] = [(whole[held[0]][0], whole[held[-1]][1])]
    return whole
