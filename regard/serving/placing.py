"""Elements of a source sentence in their places in its translation.

Each written word belongs to the source word it looked at most. An element gets the stretch of words that
gains most: what belongs to it counts for it, what does not against it (the maximum subarray). Elements inside
another stay inside it, those beside each other share no word, and each comes exactly once. Before this file:
`align.py`; after it: `document.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from regard.serving.align import Traced, words
from regard.serving.elements import UNORDERED, Element, covers, overlaps
from regard.serving.sentences import Span

Window = tuple[int, int]  # of words


@dataclass(frozen=True)
class Chunk:
    """A piece of the answer: text, and what it stands for."""

    text: str
    word: Span | None = None  # of the translation
    fixed: Element | None = None
    raw: bool = False  # a tag, or ready text: not to be escaped


@dataclass(frozen=True)
class _Node:
    element: Element
    inner: tuple["_Node", ...]


@dataclass(frozen=True)
class _Placed:
    node: _Node
    window: Window


def place(traced: Traced, elements: Sequence[Element], source: str) -> list[Chunk]:
    """The translation in pieces, with every element around, or instead of, its words."""
    return _Placer(traced, source).chunks(_tree(elements))


def _tree(elements: Sequence[Element]) -> tuple[_Node, ...]:
    """Elements with those that lie inside them; of equal ones the first holds the others."""
    rest = sorted(elements, key=lambda each: (each.start, -each.end, each.order))
    nodes = []
    while rest:
        first, *others = rest
        held = [each for each in others if _holds(first, each)]
        rest = [each for each in others if each not in held]
        nodes.append(_Node(first, _tree(held)))
    return tuple(nodes)


def _holds(outer: Element, inner: Element) -> bool:
    """Whether one element lies inside another: by the order of the tags, a term by its characters."""
    if outer.start == outer.end or outer.fixed is not None or not covers(outer.span, inner.span):
        return False
    return inner.order == UNORDERED or outer.order[0] < inner.order[0] < outer.order[1]


class _Placer:
    def __init__(self, traced: Traced, source: str) -> None:
        self.traced, self.words = traced, words(traced.text)
        places = words(source) or [(0, len(source))]
        shares = [[traced.share(word, place) for place in places] for word in self.words]
        best = [max(range(len(places)), key=row.__getitem__) for row in shares]
        self.home = [places[number] for number in best]  # of each written word
        self.trust = [max(row[number], 1e-6) for row, number in zip(shares, best, strict=True)]

    def chunks(self, nodes: Sequence[_Node]) -> list[Chunk]:
        """The whole translation."""
        if not self.words:
            return [Chunk(self.traced.text), *(chunk for node in nodes for chunk in self._empty(node))]
        found = self._fill(nodes, (0, len(self.words)))
        head, tail = self.traced.text[: self.words[0][0]], self.traced.text[self.words[-1][1] :]
        return [Chunk(head), *found, Chunk(tail)]

    def _fill(self, nodes: Sequence[_Node], window: Window) -> list[Chunk]:
        """The words of a window with the nodes in their places."""
        placed = sorted(self._choose(nodes, window), key=lambda each: (each.window, each.node.element.order))
        found: list[Chunk] = []
        at = window[0]
        for each in placed:
            first, end = each.window
            found += self._plain(at, first, window)
            if found and first == end and each.node.element.fixed and first > window[0]:
                found.append(Chunk(" "))
            found += self._gap(first, window) if first < end and found else []
            found += self._node(each)
            at = max(at, end)
        return found + self._plain(at, window[1], window)

    def _plain(self, first: int, end: int, window: Window) -> list[Chunk]:
        """Words without an element, and the space before each that is not the first of its window."""
        found = []
        for number in range(first, end):
            found += self._gap(number, window)
            found.append(Chunk(self.traced.text[slice(*self.words[number])], self.words[number]))
        return found

    def _gap(self, number: int, window: Window) -> list[Chunk]:
        """What stands between a word and the one before it."""
        if number <= window[0] or number >= len(self.words):
            return []
        return [Chunk(self.traced.text[self.words[number - 1][1] : self.words[number][0]])]

    def _node(self, each: _Placed) -> list[Chunk]:
        element, (first, end) = each.node.element, each.window
        if first == end or element.fixed is not None:
            return self._empty(each.node)
        return [
            Chunk(element.opening, raw=True),
            *self._fill(each.node.inner, each.window),
            Chunk(element.closing, raw=True),
        ]

    def _empty(self, node: _Node) -> list[Chunk]:
        """An element without words of the translation: its tags, and what must stand between them."""
        element = node.element
        inner = [Chunk(element.fixed, fixed=element, raw=bool(element.opening))] if element.fixed else []
        inner += [chunk for each in node.inner for chunk in self._empty(each)]
        return [Chunk(element.opening, raw=True), *inner, Chunk(element.closing, raw=True)]

    def _choose(self, nodes: Sequence[_Node], window: Window) -> list[_Placed]:
        """A window for each node inside the given one; those that are surest choose first."""
        free = [True] * len(self.words)
        placed = []
        for node in sorted(nodes, key=lambda each: -self._best(each.element, window, free)[0]):
            _, found = self._best(node.element, window, free)
            for number in range(*found):
                free[number] = False
            placed.append(_Placed(node, found))
        return placed

    def _best(self, element: Element, window: Window, free: Sequence[bool]) -> tuple[float, Window]:
        """The stretch of free words that gains most for an element, and its gain."""
        if element.start == element.end:
            before = [n for n in range(*window) if self.home[n][1] <= element.start]
            place = min(max(window[0] + len(before), window[0]), window[1])
            while place < window[1] and not free[place]:
                place += 1
            return 0.0, (place, place)
        gains = {n: self._gain(n, element.span) for n in range(*window) if free[n]}
        found: tuple[float, Window] | None = None
        total, start = 0.0, window[0]
        for number in range(*window):
            if number not in gains:
                total, start = 0.0, number + 1
                continue
            if total <= 0:
                total, start = 0.0, number
            total += gains[number]
            if total > 0 and (found is None or total > found[0]):
                found = total, (start, number + 1)
        if found is not None:
            return found
        if not gains:
            return float("-inf"), (window[1], window[1])
        best = max(gains, key=lambda n: self.traced.share(self.words[n], element.span))
        return gains[best], (best, best + 1)

    def _gain(self, number: int, span: Span) -> float:
        """Positive for a word that belongs to the span."""
        return self.trust[number] if overlaps(self.home[number], span) else -self.trust[number]
