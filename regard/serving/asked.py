"""A request for a translation on its way: how its texts were cut, what is held for it, and its answer.

Before this file: `document.py`; after it: `service.py`, which asks the engine in between.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from regard.serving import limits as bounds
from regard.serving.batcher import Batcher, Job
from regard.serving.room import Place
from regard.serving.schema import Translate
from regard.tasks.translation.document import Document
from regard.tasks.translation.reading import Reading
from regard.tasks.translation.texts import alternatives
from regard.text.directions import Pair

FEW = 20  # texts that are cut in no time


@dataclass(frozen=True)
class Cut:
    """A request's texts, cut."""

    pair: Pair
    model: str
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
        token = bounds.TRACED_TOKEN if self.traced else bounds.TOKEN
        reading = bounds.TRACED if self.traced else bounds.READING
        readings = (ask.alternatives + 1) * (reading * len(self.sizes) + token * sum(self.sizes))
        told = bounds.TOLD_WORD * sum(self.sizes) if ask.words else 0
        return bounds.SENTENCE * len(self.sizes) + readings + told


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
    return not _fine(ask) and len(ask.texts) <= FEW and sum(map(len, ask.texts)) <= bounds.SMALL


def is_long(ask: Translate) -> bool:
    """Whether a request waits in the queue of long ones."""
    length = sum(map(len, ask.texts)) * (ask.alternatives + 1)
    return len(ask.texts) > FEW or length > bounds.QUICK


def dear(ask: Translate) -> bool:
    """Whether a request is done beside: what is long, or is followed word by word."""
    return _fine(ask) or is_long(ask)


def _fine(ask: Translate) -> bool:
    return bool(ask.words or ask.glossary) or ask.format == "html"


def answer(asked: Asked, results: Sequence[list[Reading]]) -> dict[str, Any]:
    """What `/translate` says."""
    texts, others, words = [], [], []
    for document, readings in zip(asked.documents, asked.lists(results), strict=True):
        best = [each[0] for each in readings]
        texts.append("".join(document.pieces(best)))
        if asked.ask.alternatives:
            found = alternatives(document, readings, asked.ask.alternatives)
            others.append([text for text, _, _ in found])
        if asked.ask.words:
            words.append(document.words(best))
    told: dict[str, Any] = {"translatedText": texts}
    if asked.ask.alternatives:
        told["alternatives"] = others
    if asked.ask.words:
        told["words"] = words
    single = isinstance(asked.ask.q, str)
    if single:
        told = {name: values[0] for name, values in told.items()}
    if asked.detected:
        several = [asked.detected] * len(texts)
        told["detectedLanguage"] = asked.detected if single else several
    return told
