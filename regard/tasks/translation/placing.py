"""Elements of a source sentence in their places in its translation.

Each written word belongs to the source word it looked at most. An element gets the stretch of words that
gains most: what belongs to it counts for it, what does not against it (the maximum subarray). Elements inside
another stay inside it, those beside each other share no word, and each comes exactly once. However deep they
are nested, nothing is called deeper. Before this file: `align.py`; after it: `document.py`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from regard.tasks.translation.align import Traced, words
from regard.text.elements import UNORDERED, Element, Spans
from regard.text.sentences import Span

Window = tuple[int, int]  # of words
_SCALE = 1 << 20  # gains are counted in whole numbers, so that sums are exact
_NEVER = -(1 << 40)  # what a word costs that another element has


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of the answer: text, and what it stands for."""

    text: str
    word: int | None = None  # the number of a written word
    fixed: Element | None = None
    raw: bool = False  # a tag, or ready text: not to be escaped


@dataclass(slots=True)
class _Node:
    element: Element
    inner: list["_Node"] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Fill:
    """Still to be done: the words of a window with nodes among them; without a window, nodes alone."""

    nodes: Sequence[_Node]
    window: Window | None


def place(traced: Traced, elements: Sequence[Element], source: str) -> list[Chunk]:
    """The translation in pieces, with every element around, or instead of, its words."""
    return _Placer(traced, source).chunks(_tree(elements))


def _tree(elements: Sequence[Element]) -> list[_Node]:
    """Elements with those that lie inside them: tags by the order they came in, terms by their characters."""
    top: list[_Node] = []
    tags: list[_Node] = []  # those that can hold others
    above: list[_Node] = []
    for element in sorted(
        (each for each in elements if each.order != UNORDERED), key=lambda each: each.order
    ):
        while above and above[-1].element.order[1] < element.order[0]:
            above.pop()
        node = _Node(element)
        (above[-1].inner if above else top).append(node)
        if element.start < element.end and element.fixed is None:
            above.append(node)
            tags.append(node)
    _add_terms(top, tags, sorted((e for e in elements if e.order == UNORDERED), key=lambda e: e.span))
    for nodes in [top, *(node.inner for node in tags)]:
        nodes.sort(key=lambda each: (each.element.start, -each.element.end, each.element.order))
    return top


def _add_terms(top: list[_Node], tags: Sequence[_Node], terms: Iterable[Element]) -> None:
    """Put each term into the innermost tag around it."""
    above: list[_Node] = []
    number = 0
    for term in terms:
        while number < len(tags) and tags[number].element.start <= term.start:
            while above and above[-1].element.end <= tags[number].element.start:
                above.pop()
            above.append(tags[number])
            number += 1
        while above and above[-1].element.end < term.end:
            above.pop()
        (above[-1].inner if above else top).append(_Node(term))


class _Placer:
    def __init__(self, traced: Traced, source: str) -> None:
        self.traced, self.words = traced, words(traced.text) if traced.home else []
        places = words(source) or [(0, len(source))]
        self.places = Spans(places)
        home = np.asarray([places[number] for number in traced.home], np.int64).reshape(-1, 2)
        self.starts, self.ends = home[:, 0], home[:, 1]  # of the source word that a written word belongs to
        self.trust = 1 + (np.asarray(traced.share, np.float64) * _SCALE).astype(np.int64)

    def chunks(self, nodes: Sequence[_Node]) -> list[Chunk]:
        """The whole translation."""
        if not self.words:
            return [Chunk(self.traced.text), *self._done(_Fill(nodes, None))]
        found = self._done(_Fill(nodes, (0, len(self.words))))
        head, tail = self.traced.text[: self.words[0][0]], self.traced.text[self.words[-1][1] :]
        return [Chunk(head), *found, Chunk(tail)]

    def _done(self, fill: _Fill) -> list[Chunk]:
        found: list[Chunk] = []
        waiting: list[Chunk | _Fill] = [fill]
        while waiting:
            each = waiting.pop()
            if isinstance(each, Chunk):
                found.append(each)
            elif each.window is None:
                waiting += reversed([part for node in each.nodes for part in _empty(node)])
            else:
                waiting += reversed(self._filled(each.nodes, each.window))
        return found

    def _filled(self, nodes: Sequence[_Node], window: Window) -> list[Chunk | _Fill]:
        """The words of a window with the nodes in their places; what is inside them is still to be done."""
        found: list[Chunk | _Fill] = []
        at = window[0]
        for (first, end), node in self._choose(nodes, window):
            found += self._plain(at, first, window)
            element = node.element
            if found and first == end and element.fixed and first > window[0]:
                found.append(Chunk(" "))
            if first == end or element.fixed is not None:
                found += self._gap(first, window) if first < end and found else []
                found += _empty(node)
            else:
                found += self._gap(first, window) if found else []
                found.append(Chunk(element.opening, raw=True))
                found.append(_Fill(node.inner, (first, end)))
                found.append(Chunk(element.closing, raw=True))
            at = max(at, end)
        return [*found, *self._plain(at, window[1], window)]

    def _plain(self, first: int, end: int, window: Window) -> list[Chunk]:
        """Words without an element, and the space before each that is not the first of its window."""
        found = []
        for number in range(first, end):
            found += self._gap(number, window)
            found.append(Chunk(self.traced.text[slice(*self.words[number])], number))
        return found

    def _gap(self, number: int, window: Window) -> list[Chunk]:
        """What stands between a word and the one before it."""
        if number <= window[0] or number >= len(self.words):
            return []
        return [Chunk(self.traced.text[self.words[number - 1][1] : self.words[number][0]])]

    def _choose(self, nodes: Sequence[_Node], window: Window) -> list[tuple[Window, _Node]]:
        """A window for each node inside the given one, in order; those that are surest choose first."""
        if not nodes:
            return []
        free = np.ones(len(self.words), bool)
        wishes = [(self._best(node.element, window, free), node) for node in nodes]
        placed = []
        for (_, wished), node in sorted(wishes, key=lambda wish: -wish[0][0]):
            found = wished
            if (
                node.element.start == node.element.end
                or not free[slice(*wished)].all()
                or wished[0] == wished[1]
            ):
                found = self._best(node.element, window, free)[1]
            free[slice(*found)] = False
            placed.append((found, node))
        return sorted(placed, key=lambda each: (each[0], each[1].element.order))

    def _best(self, element: Element, window: Window, free: NDArray[np.bool_]) -> tuple[float, Window]:
        """The stretch of free words that gains most for an element, and its gain."""
        first, end = window
        if element.start == element.end:
            at = first + int((self.ends[first:end] <= element.start).sum())
            rest = free[at:end]
            at = at + int(rest.argmax()) if rest.any() else end
            return 0.0, (at, at)
        room = free[first:end]
        if not room.any():
            return float("-inf"), (end, end)
        mine = (self.starts[first:end] < element.end) & (self.ends[first:end] > element.start)
        gains = np.where(room, np.where(mine, self.trust[first:end], -self.trust[first:end]), _NEVER)
        sums = np.concatenate(([0], gains.cumsum()))
        lowest = np.minimum.accumulate(sums[:-1])
        last = int((sums[1:] - lowest).argmax())
        gain = int(sums[last + 1] - lowest[last])
        if gain > 0:
            start = int(np.flatnonzero(sums[: last + 1] == lowest[last])[-1])
            return gain, (first + start, first + last + 1)
        number = self._nearest(element.span, first, room)
        return int(gains[number - first]), (number, number + 1)

    def _nearest(self, span: Span, first: int, room: NDArray[np.bool_]) -> int:
        """Of the free words that which looked at the span most, or its neighbour: to no word is it home."""
        looked = [self.traced.seen[number] for number in self.places.met(span)] or [first]
        there = np.flatnonzero(room) + first
        wanted = next((number for number in looked if number in there), looked[0])
        return int(there[np.abs(there - wanted).argmin()])


def _empty(node: _Node) -> list[Chunk | _Fill]:
    """An element without words of the translation: its tags, and what must stand between them."""
    element = node.element
    inner = [Chunk(element.fixed, fixed=element, raw=bool(element.opening))] if element.fixed else []
    rest = [_Fill(node.inner, None)] if node.inner else []
    return [Chunk(element.opening, raw=True), *inner, *rest, Chunk(element.closing, raw=True)]
