"""Texts of any length, as they stand: cut into sentences, translated, and put together again.

What the command line, Python and the server make of a text is this: sentences are found in it, tags and terms
of a glossary keep their places, other answers and the origins of words are told where they are asked for.
Before this file: `document.py`, `reading.py`; after it: `translator.py` (Python), `regard.serving`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from regard.errors import UsageError
from regard.tasks.translation.document import Document, read_document
from regard.tasks.translation.reading import Reading, readings
from regard.tasks.translation.windows import windows
from regard.text.glossary import Glossary

if TYPE_CHECKING:
    from regard.tasks.translation.translator import Translation, Translator


@dataclass(frozen=True)
class Handling:
    """How texts are handled: what is asked of them beside their translation."""

    html: bool = False  # they hold tags
    glossary: Glossary = field(default_factory=lambda: Glossary({}))
    words: bool = False  # where each word came from
    n_best: int = 1  # answers to each, the best with them

    @classmethod
    def of(
        cls,
        *,
        html: bool = False,
        glossary: Mapping[str, str] | None = None,
        words: bool = False,
        n_best: int = 1,
    ) -> "Handling":
        """As a caller says it; a glossary is terms and what they become."""
        if words and html:
            raise UsageError("the origins of words are told of plain text, not of HTML")
        return cls(html, Glossary(glossary or {}), words, n_best)


def cut(translator: "Translator", text: str, handling: Handling, *, most: int = 1 << 30) -> Document:
    """A text in its parts; DataError where it has more than `most` of them."""
    return read_document(
        text,
        markup=handling.html,
        glossary=handling.glossary,
        count=lambda piece: len(translator.tokenizer.encode_batch([piece])[0]),
        limit=translator.limit,
        most=most,
    )


def translated(
    translator: "Translator", texts: Iterable[str], handling: Handling, window: int, **search: Any
) -> "Iterator[Translation]":
    """Each text translated, so many read ahead; `search` are the options of `Translator.hypotheses`."""
    for several, fault in windows(texts, window):
        documents = [cut(translator, text, handling) for text in several]
        traced = handling.words or any(document.needs_trace for document in documents)
        if traced and not hasattr(translator.model, "project"):
            raise UsageError("tags, terms and words are placed by attention, which this model does not show")
        sentences = [sentence.text for document in documents for sentence in document.sentences]
        found = iter(readings(translator, sentences, traced=traced, n_best=handling.n_best, **search))
        for document in documents:
            yield answer(document, [next(found) for _ in document.sentences], handling)
        if fault is not None:
            raise fault


def answer(document: Document, found: Sequence[list[Reading]], handling: Handling) -> "Translation":
    """What became of one text; `found` are the readings of its sentences."""
    from regard.tasks.translation.translator import Translation

    best = [each[0] for each in found]
    count = max(1, len(best))
    score = sum(each.score for each in best) / count
    cut_short = any(each.truncated for each in best)
    text = "".join(document.pieces(best))
    several: tuple[Translation, ...] = ()
    if handling.n_best > 1:
        others = alternatives(document, found, handling.n_best - 1)
        several = (
            Translation(text, score, cut_short),
            *(Translation(other, score - loss / count, short) for other, loss, short in others),
        )
    words = tuple(document.words(best)) if handling.words else None
    tokens = sum(each.tokens for each in best)
    return Translation(text, score, cut_short, tokens, several, words=words)


def alternatives(
    document: Document, found: Sequence[list[Reading]], count: int
) -> Iterable[tuple[str, float, bool]]:
    """Other answers, what each loses and whether it was cut short; the best first.

    Each has another reading of one sentence, the one that loses least.
    """
    best = [each[0] for each in found]
    losses = [
        (several[0].score - other.score, number, other)
        for number, several in enumerate(found)
        for other in several[1:]
    ]
    sentences, pieces = document.sentences, document.pieces(best)
    places = [place for place, part in enumerate(document.parts) if not isinstance(part, str)]
    said = {(place, pieces[place]) for place in places}
    for loss, number, other in sorted(losses, key=lambda each: each[:2]):
        if not count:
            return
        place = places[number]
        text = document.rendered(sentences[number], other)
        if (place, text) not in said:
            said.add((place, text))
            count -= 1
            short = any(each.truncated for each in (*best[:number], other, *best[number + 1 :]))
            yield "".join([*pieces[:place], text, *pieces[place + 1 :]]), loss, short
