"""A request for a translation on its way: how its texts were cut, what is held for it, and its answer.

Before this file: `document.py`; after it: `service.py`, which asks the engine in between.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from regard.serving import limits as bounds
from regard.serving.batcher import Batcher, Job
from regard.serving.document import Document
from regard.serving.engine import Pair, Reading
from regard.serving.room import Place
from regard.serving.schema import Translate


@dataclass(frozen=True)
class Cut:
    """A request's texts, cut."""

    pair: Pair
    documents: Sequence[Document]
    sizes: Sequence[int]  # tokens of each sentence, its end with it
    traced: bool
    detected: dict[str, Any] | None = None

    @property
    def sentences(self) -> list[str]:
        """What the model is given."""
        return [sentence.text for document in self.documents for sentence in document.sentences]

    def bytes(self, ask: Translate) -> int:
        """What is held for it until its answer is sent, about."""
        token = bounds.TOLD_TOKEN if ask.words else bounds.TRACED_TOKEN if self.traced else bounds.TOKEN
        reading = bounds.TRACED if self.traced else bounds.READING
        readings = (ask.alternatives + 1) * (reading * len(self.sizes) + token * sum(self.sizes))
        return bounds.SENTENCE * len(self.sizes) + readings


@dataclass(frozen=True)
class Asked:
    """A request under way."""

    ask: Translate
    documents: Sequence[Document]
    job: Job
    place: Place
    batcher: Batcher
    detected: dict[str, Any] | None = None

    @property
    def plain(self) -> bool:
        """Whether its answer is put together in no time."""
        return small(self.ask) and not self.ask.alternatives

    def lists(self, results: Sequence[list[Reading]]) -> list[list[list[Reading]]]:
        """The readings of each document's sentences."""
        waiting = iter(results)
        return [[next(waiting) for _ in document.sentences] for document in self.documents]


def small(ask: Translate) -> bool:
    """Whether a request is cut in no time: a few plain sentences."""
    fine = ask.words or ask.glossary or ask.format == "html"
    return not fine and len(ask.texts) <= 20 and sum(map(len, ask.texts)) <= bounds.SMALL


def answer(asked: Asked, results: Sequence[list[Reading]]) -> dict[str, Any]:
    """What `/translate` says."""
    texts, others, words = [], [], []
    for document, readings in zip(asked.documents, asked.lists(results), strict=True):
        best = [each[0] for each in readings]
        texts.append("".join(document.pieces(best)))
        if asked.ask.alternatives:
            others.append(_alternatives(document, readings, asked.ask.alternatives))
        if asked.ask.words:
            words.append(document.words(best))
    found: dict[str, Any] = {"translatedText": texts}
    if asked.ask.alternatives:
        found["alternatives"] = others
    if asked.ask.words:
        found["words"] = words
    single = isinstance(asked.ask.q, str)
    if single:
        found = {name: values[0] for name, values in found.items()}
    if asked.detected:
        several = [asked.detected] * len(texts)
        found["detectedLanguage"] = asked.detected if single else several
    return found


def _alternatives(document: Document, readings: Sequence[list[Reading]], count: int) -> list[str]:
    """Other answers, the best first: each has another reading of one sentence, the one that loses least."""
    best = [each[0] for each in readings]
    losses = [
        (several[0].score - other.score, number, other)
        for number, several in enumerate(readings)
        for other in several[1:]
    ]
    sentences, pieces = document.sentences, document.pieces(best)
    places = [place for place, part in enumerate(document.parts) if not isinstance(part, str)]
    said = {(place, pieces[place]) for place in places}
    found: list[str] = []
    for _, number, other in sorted(losses, key=lambda each: each[:2]):
        if len(found) == count:
            break
        place = places[number]
        text = document.rendered(sentences[number], other)
        if (place, text) not in said:
            said.add((place, text))
            found.append("".join([*pieces[:place], text, *pieces[place + 1 :]]))
    return found
