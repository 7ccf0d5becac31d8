"""A text that is to be translated: its sentences, what is tied to their words, and everything between them.

Parts in their order: strings that are kept as they are, and sentences. When the sentences have come back, the
answer is put together: line breaks and spaces as they were, tags and terms in their places. Before this file:
`schema.py`; after it: `batcher.py`, and back.
"""

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from regard.serving.align import Traced, words
from regard.serving.elements import Element, covers, inside, merged, overlaps
from regard.serving.engine import Reading
from regard.serving.glossary import terms
from regard.serving.markup import runs
from regard.serving.placing import Chunk, place
from regard.serving.sentences import Span, fitting, sentences
from regard.text.normalise import normalise


@dataclass(frozen=True)
class Sentence:
    """What goes to the model, and what hangs on its words."""

    text: str  # normalised
    start: int  # where it stood in the request's text; only without markup
    raw: str  # as it stood there
    elements: tuple[Element, ...] = ()


@dataclass(frozen=True)
class Document:
    """One text of a request."""

    parts: tuple[str | Sentence, ...]
    markup: bool

    @property
    def sentences(self) -> list[Sentence]:
        """What is to be translated."""
        return [part for part in self.parts if isinstance(part, Sentence)]

    @property
    def needs_trace(self) -> bool:
        """Whether anything has to be placed by the alignment."""
        return any(sentence.elements for sentence in self.sentences)

    def pieces(self, readings: Sequence[Reading]) -> list[str]:
        """The answer part by part; `readings` are those of the sentences, in order."""
        waiting = iter(readings)
        return [part if isinstance(part, str) else self.rendered(part, next(waiting)) for part in self.parts]

    def rendered(self, sentence: Sentence, reading: Reading) -> str:
        """One sentence of the answer."""
        chunks = _chunks(sentence, reading)
        return "".join(self._shown(chunk) for chunk in chunks)

    def _shown(self, chunk: Chunk) -> str:
        return chunk.text if chunk.raw or not self.markup else html.escape(chunk.text, quote=False)

    def words(self, readings: Sequence[Reading]) -> list[dict[str, Any]]:
        """Each word of the answer: its place, how sure the model was, and where it came from."""
        found: list[dict[str, Any]] = []
        waiting, at = iter(readings), 0
        for part in self.parts:
            if isinstance(part, str):
                at += len(part)
                continue
            reading = next(waiting)
            for chunk in _chunks(part, reading):
                if reading.trace is not None and (chunk.word or chunk.fixed):
                    found.append(_word(part, reading.trace, chunk, at))
                at += len(chunk.text)
        return found


def _chunks(sentence: Sentence, reading: Reading) -> list[Chunk]:
    if reading.trace is None and not sentence.elements:
        return [Chunk(reading.text)]
    traced = reading.trace or Traced(reading.text, (), (), (), ())  # of nothing; tags are kept all the same
    return place(traced, sentence.elements, sentence.text)


def _word(sentence: Sentence, traced: Traced, chunk: Chunk, at: int) -> dict[str, Any]:
    """A word as `/translate` tells it; what a glossary put there has no confidence."""
    entry: dict[str, Any] = {"text": chunk.text, "start": at, "end": at + len(chunk.text)}
    places = words(sentence.text)
    if chunk.fixed is not None:
        held = [place for place in places if overlaps(place, chunk.fixed.span)]
        return entry | {"confidence": None, "from": [_source(sentence, place) for place in held]}
    assert chunk.word is not None
    written = chunk.word
    confidence = round(traced.probability(written), 4)
    best = max(places, key=lambda each: traced.share(written, each), default=None)
    return entry | {"confidence": confidence, "from": [_source(sentence, best)] if best else []}


def _source(sentence: Sentence, span: Span) -> dict[str, Any]:
    """A word of the source as the client wrote it."""
    number = words(sentence.text).index(span)
    raw = words(sentence.raw)
    start, end = raw[number] if number < len(raw) else (0, len(sentence.raw))
    return {
        "text": sentence.text[slice(*span)],
        "start": sentence.start + start,
        "end": sentence.start + end,
    }


# Reading ---------------------------------------------------------------------------------------------


def read_document(
    text: str, *, markup: bool, glossary: Mapping[str, str], count: Callable[[str], int], limit: int
) -> Document:
    """The parts of a text; `count` tells the tokens of a sentence, which may have at most `limit`."""
    cut = _Cutter(count, limit, glossary, markup)
    parts: list[str | Sentence] = []
    for part in runs(text) if markup else [text]:
        if isinstance(part, str) and markup:
            parts.append(part)
        elif isinstance(part, str):
            parts += cut.parts(part, ())
        else:
            parts += cut.parts(part.text, part.elements)
    return Document(tuple(parts), markup)


@dataclass(frozen=True)
class _Cutter:
    count: Callable[[str], int]
    limit: int
    glossary: Mapping[str, str]
    markup: bool

    def parts(self, text: str, elements: Sequence[Element]) -> list[str | Sentence]:
        """One run of text in sentences and what lies between."""
        marks = [*elements, *terms(text, self.glossary, elements)]
        spans = self._spans(text, marks)
        inner = [each for each in marks if any(inside(each, span) for span in spans)]
        outer = [each for each in marks if each not in inner]
        found: list[str | Sentence] = []
        at = 0
        for span in spans:
            found.append(self._between(text, (at, span[0]), outer))
            found.append(self._sentence(text, span, marks))
            at = span[1]
        return [*found, self._between(text, (at, len(text)), outer)]

    def _spans(self, text: str, marks: Sequence[Element]) -> list[Span]:
        """Sentences that no element cuts and that the model can take; what is fixed whole is one, too."""
        found = []
        for span in merged(sentences(text), marks):
            kept = _kept(span, marks)
            if kept is not None:
                found.append(kept.span)
            else:
                found += fitting(text, span, self._tokens, self.limit)
        return found

    def _tokens(self, piece: str) -> int:
        """The tokens of a piece, or a bound for them that is low enough: counting all of them takes time."""
        bound = len(piece) + 1  # of ASCII, which nothing makes longer: a character each, and a space in front
        return bound if piece.isascii() and bound <= self.limit else self.count(normalise(piece))

    def _sentence(self, text: str, span: Span, marks: Sequence[Element]) -> str | Sentence:
        """What stands in a span: a sentence, or what needs no translation."""
        raw = text[slice(*span)]
        kept = _kept(span, marks)
        if kept is not None and kept.fixed is not None:
            return kept.fixed if kept.opening else self._escaped(kept.fixed)
        if not any(map(str.isalnum, raw)):
            return self._escaped(raw)
        held = [each for each in marks if inside(each, span) and not covers(each.span, span)]
        return Sentence(normalise(raw), span[0], raw, tuple(_moved(each.within(span), raw) for each in held))

    def _between(self, text: str, gap: Span, outer: Sequence[Element]) -> str:
        """What lies between two sentences: blanks, and the tags around sentences."""
        events = [
            (spot, order, tag)
            for each in outer
            for spot, order, tag in (
                (each.start, each.order[0], each.opening),
                (each.end, each.order[1], each.closing),
            )
            if tag and gap[0] <= spot <= gap[1]
        ]
        found, at = "", gap[0]
        for spot, _, tag in sorted(events, key=lambda event: event[:2]):
            found += self._escaped(text[at:spot]) + tag
            at = spot
        return found + self._escaped(text[at : gap[1]])

    def _escaped(self, text: str) -> str:
        return html.escape(text, quote=False) if self.markup else text


def _kept(span: Span, marks: Sequence[Element]) -> Element | None:
    """What a sentence is wholly fixed by, so that no model need see it."""
    return next((each for each in marks if each.fixed is not None and covers(each.span, span)), None)


def _moved(element: Element, raw: str) -> Element:
    """The element with its places counted in the normalised sentence."""
    if normalise(raw) == raw:
        return element
    start, end = (len(normalise(raw[:place] + "x")) - 1 for place in element.span)
    return Element(start, end, element.opening, element.closing, element.fixed, element.order)
