"""What is tied to words of a sentence: a tag around them, or a text that must stand in their place.

`markup.py` and `glossary.py` find them in the source. `document.py` of the translation task keeps sentences
whole around them, `placing` there finds their words again in the translation. Tags are nested and terms are
crossed by none, so that places can be looked up by halving, and a text with many elements costs no more than
they are.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from regard.text.sentences import Span

UNORDERED = (1 << 62, 1 << 62)  # of what no tag was written for


@dataclass(frozen=True, slots=True)
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


class Spans:
    """Spans in their order that share no character, and which of them an element meets."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self.spans = spans
        self._starts, self._ends = [start for start, _ in spans], [end for _, end in spans]

    def met(self, span: Span) -> range:
        """The numbers of those that share a character with a span; of an empty one, what it stands in."""
        if span[0] == span[1]:
            return range(bisect_right(self._ends, span[0]), bisect_left(self._starts, span[0]))
        return range(bisect_right(self._ends, span[0]), bisect_left(self._starts, span[1]))

    def holding(self, element: Element) -> list[int]:
        """The numbers of those that the element begins or ends inside of: the first, the last, or none."""
        met = self.met(element.span)
        return [n for n in dict.fromkeys((*met[:1], *met[-1:])) if inside(element, self.spans[n])]


def merged(spans: Sequence[Span], elements: Iterable[Element]) -> list[Span]:
    """The sentences, those joined that an element begins in one of and ends in another.

    >>> merged([(0, 4), (5, 9), (10, 14)], [Element(2, 7)])
    [(0, 9), (10, 14)]
    """
    found, joins = Spans(spans), [0] * (len(spans) + 1)
    for element in elements:
        met = found.met(element.span)
        if len(met) > 1 and (element.fixed is not None or found.holding(element)):
            joins[met[0]] += 1
            joins[met[-1]] -= 1
    whole: list[Span] = []
    for span, joined in zip(spans, [0, *accumulate(joins)], strict=False):
        if joined:
            whole[-1] = (whole[-1][0], span[1])
        else:
            whole.append(span)
    return whole
