"""A text that is to be translated: its sentences, what is tied to their words, and everything between them.

Parts in their order: strings that are kept as they are, and sentences. When the sentences have come back, the
answer is put together: line breaks and spaces as they were, tags and terms in their places. Before this file:
`regard.text`; after it: `reading.py`, and back.
"""

import html
from array import array
from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from regard.errors import DataError
from regard.tasks.translation.align import Traced, words
from regard.tasks.translation.placing import Chunk, place
from regard.tasks.translation.reading import Reading
from regard.text.elements import Element, Spans, covers, merged
from regard.text.glossary import Glossary
from regard.text.markup import runs
from regard.text.normalise import normalise
from regard.text.sentences import Span, fitting, sentences

_BREAKS = str.maketrans("\n\r\f\v", "    ")  # in HTML a line break is a blank like others


@dataclass(frozen=True, slots=True)
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
            told = _Telling(part)
            for chunk in _chunks(part, reading):
                if reading.trace is not None and (chunk.word is not None or chunk.fixed):
                    found.append(told.word(reading.trace, chunk, at))
                at += len(chunk.text)
        return found


def _chunks(sentence: Sentence, reading: Reading) -> list[Chunk]:
    if reading.trace is None and not sentence.elements:
        return [Chunk(reading.text)]
    nothing = Traced(
        reading.text, array("f"), array("i"), array("f"), array("i")
    )  # tags are kept all the same
    return place(reading.trace or nothing, sentence.elements, sentence.text)


class _Telling:
    """What is told of the words of one sentence."""

    def __init__(self, sentence: Sentence) -> None:
        self.sentence = sentence
        self.places = Spans(words(sentence.text))
        self.raw = words(sentence.raw)

    def word(self, traced: Traced, chunk: Chunk, at: int) -> dict[str, Any]:
        """A word of the answer; what a glossary put there has no confidence."""
        entry: dict[str, Any] = {"text": chunk.text, "start": at, "end": at + len(chunk.text)}
        if chunk.fixed is not None:
            held = self.places.met(chunk.fixed.span)
            return entry | {"confidence": None, "from": [self._source(number) for number in held]}
        assert chunk.word is not None
        home = [traced.home[chunk.word]] if self.places.spans else []
        confidence = round(traced.sure[chunk.word], 4)
        return entry | {"confidence": confidence, "from": [self._source(number) for number in home]}

    def _source(self, number: int) -> dict[str, Any]:
        """A word of the source as the client wrote it."""
        sentence = self.sentence
        start, end = self.raw[number] if number < len(self.raw) else (0, len(sentence.raw))
        text = sentence.text[slice(*self.places.spans[number])]
        return {"text": text, "start": sentence.start + start, "end": sentence.start + end}


# Reading ---------------------------------------------------------------------------------------------


def read_document(
    text: str,
    *,
    markup: bool,
    glossary: Glossary,
    count: Callable[[str], int],
    limit: int,
    most: int = 1 << 30,
) -> Document:
    """The parts of a text; `count` tells the tokens of a sentence, which may have at most `limit`.

    Where there are more than `most` parts, or more tags and terms, DataError.
    """
    cut = _Cutter(count, limit, glossary, markup, most)
    parts: list[str | Sentence] = []
    for part in runs(text) if markup else [text]:
        if isinstance(part, str) and markup:
            parts.append(part)
        elif isinstance(part, str):
            parts += cut.parts(part, ())
        else:
            parts += cut.parts(part.text, part.elements)
        cut.check("parts", len(parts))
    return Document(tuple(parts), markup)


class _Cutter:
    def __init__(
        self, count: Callable[[str], int], limit: int, glossary: Glossary, markup: bool, most: int
    ) -> None:
        self.count, self.limit, self.glossary, self.markup = count, limit, glossary, markup
        self.most, self.marked = most, 0

    def check(self, what: str, number: int) -> None:
        """Refuse what is too much for one text."""
        if number > self.most:
            raise DataError(f"the text has more than {self.most} {what}; send it in several requests")

    def parts(self, text: str, elements: Sequence[Element]) -> list[str | Sentence]:
        """One run of text in sentences and what lies between."""
        flat = text.translate(_BREAKS) if self.markup else text
        marks = [*elements, *self.glossary.terms(flat, elements)]
        self.marked += len(marks)
        self.check("tags and terms", self.marked)
        fixed = _Fixed(marks)
        spans = self._spans(flat, marks, fixed)
        where, outer = Spans(spans), []
        held: list[list[Element]] = [[] for _ in spans]
        for each in marks:
            numbers = where.holding(each)
            for number in numbers:
                held[number].append(each)
            if not numbers:
                outer.append(each)
        between = _Between(text, outer, self._escaped)
        found: list[str | Sentence] = []
        for span, inner in zip(spans, held, strict=True):
            found.append(between.until(span[0]))
            found.append(self._sentence(flat[slice(*span)], span, inner, fixed))
            between.at = span[1]
        return [*found, between.until(len(text))]

    def _spans(self, text: str, marks: Sequence[Element], fixed: "_Fixed") -> list[Span]:
        """Sentences that no element cuts and that the model can take; what is fixed whole is one, too."""
        found = []
        for span in merged(sentences(text), marks):
            kept = fixed.around(span)
            if kept is not None:
                found.append(kept.span)
            else:
                found += fitting(text, span, self._tokens, self.limit)
        return found

    def _tokens(self, piece: str) -> int:
        """The tokens of a piece, or a bound for them that is low enough: counting all of them takes time."""
        bound = len(piece) + 1  # of ASCII, which nothing makes longer: a character each, and a space in front
        return bound if piece.isascii() and bound <= self.limit else self.count(normalise(piece))

    def _sentence(self, raw: str, span: Span, inner: Sequence[Element], fixed: "_Fixed") -> str | Sentence:
        """What stands in a span: a sentence, or what needs no translation."""
        kept = fixed.around(span)
        if kept is not None and kept.fixed is not None:
            return kept.fixed if kept.opening else self._escaped(kept.fixed)
        if not any(map(str.isalnum, raw)):
            return self._escaped(raw)
        held = tuple(_moved([each.within(span) for each in inner], raw)) if inner else ()
        return Sentence(normalise(raw), span[0], raw, held)

    def _escaped(self, text: str) -> str:
        return html.escape(text, quote=False) if self.markup else text


class _Fixed:
    """What is fixed, by its place; none of it shares a character with another."""

    def __init__(self, marks: Sequence[Element]) -> None:
        self._marks = sorted((each for each in marks if each.fixed is not None), key=lambda each: each.span)
        self._starts = [each.start for each in self._marks]

    def around(self, span: Span) -> Element | None:
        """What a sentence is wholly fixed by, so that no model need see it."""
        number = bisect_right(self._starts, span[0]) - 1
        found = self._marks[number] if number >= 0 else None
        return found if found is not None and covers(found.span, span) else None


class _Between:
    """What lies between sentences: blanks, and the tags around sentences, read from front to back."""

    def __init__(self, text: str, outer: Sequence[Element], escaped: Callable[[str], str]) -> None:
        self.text, self.escaped, self.at = text, escaped, 0
        events = [(each.start, each.order[0], each.opening) for each in outer if each.opening]
        events += [(each.end, each.order[1], each.closing) for each in outer if each.closing]
        self._events = sorted(events, key=lambda event: event[:2], reverse=True)

    def until(self, end: int) -> str:
        """From where the last sentence ended up to here."""
        found = []
        while self._events and self._events[-1][0] <= end:
            spot, _, tag = self._events.pop()
            found += [self.escaped(self.text[self.at : spot]), tag]
            self.at = max(self.at, spot)
        found.append(self.escaped(self.text[self.at : end]))
        return "".join(found)


def _moved(elements: Sequence[Element], raw: str) -> list[Element]:
    """The elements with their places counted in the normalised sentence."""
    if normalise(raw) == raw:
        return list(elements)
    places = normal_places(raw, {place for each in elements for place in each.span})
    return [replace(each, start=places[each.start], end=places[each.end]) for each in elements]


def normal_places(raw: str, places: set[int]) -> dict[int, int]:
    """Where places of a text are in its normalised form.

    A letter that follows no blank's rule and joins no letter before it parts the text: what comes after it is
    counted from there, so that many places cost no more than the text is long.
    """
    found: dict[int, int] = {}
    begin = count = 0  # the last letter that parts the text, and the characters before it
    for at in sorted(places):
        lead = "x" if begin else ""
        found[at] = count + len(normalise(lead + raw[begin:at] + "x")) - 1 - len(lead)
        if at < len(raw) and raw[at].isalnum() and not "\u1160" <= raw[at] <= "\u11ff":
            begin, count = at, found[at]
    return found
