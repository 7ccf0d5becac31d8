"""One word in several sentences: the context-aware vectors that a model gives it, compared.

    cosine(a, b) = a·b / (|a| |b|) of the vectors, the mean over a word's pieces

An encoder has seen the whole sentence; a decoder that stands alone what comes before the word, and the word.

An embedding alone would give the same vector everywhere; what differs here is what attention brought in.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.errors import DataError, ModelError, UsageError
from regard.look.document import as_json, rounded
from regard.look.figure import Figure, heat_map
from regard.look.html import notebook_frame, page
from regard.look.look import Origin, opened, write
from regard.look.words import Side, Word
from regard.tasks.task import load

ENDINGS = (".html", ".json", ".png", ".svg")


@dataclass(frozen=True)
class Occurrence:
    """The word in one of the sentences."""

    sentence: int
    side: Side
    word: Word


@dataclass(frozen=True)
class Contexts:
    """The vectors of a word wherever it stands."""

    word: str
    occurrences: tuple[Occurrence, ...]
    vectors: Tensor  # (N, D)
    origin: Origin

    @property
    def cosine(self) -> Tensor:
        """How alike the vectors are: (N, N), 1 for the same direction."""
        unit = torch.nn.functional.normalize(self.vectors.double(), dim=-1)
        return unit @ unit.T

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values: what docs/look.md describes."""
        return {
            "format": "regard-word",
            "version": 1,
            "model": {"name": self.origin.name, "card": self.origin.card},
            "word": self.word,
            "occurrences": [
                {
                    "sentence": each.sentence,
                    "words": [word.text for word in _words(each.side)],
                    "place": _words(each.side).index(each.word),
                }
                for each in self.occurrences
            ],
            "cosine": rounded(self.cosine, 4),
            "vectors": rounded(self.vectors, 4),
        }

    def to_json(self) -> str:
        """`to_dict` as text."""
        return as_json(self.to_dict())

    def to_html(self) -> str:
        """A page in one file that needs no network."""
        return page(self.to_dict(), "contexts.js")

    def figure(self) -> Figure:
        """The cosines as a figure; each occurrence is shown with the words around it."""
        names = [_around(each) for each in self.occurrences]
        return heat_map(self.cosine, names, names, f"cosine of the vectors of “{self.word}”")

    def save(self, path: str | PathLike[str]) -> None:
        """Write it by the ending of the path: .html, .json, .svg or .png."""
        write(Path(path), self)

    def _repr_html_(self) -> str:
        return notebook_frame(self.to_html(), f"The word {self.word} in context")


def compare_word(model: Any, word: str, sentences: Sequence[str]) -> Contexts:
    """The vectors of `word` in each sentence, at every place where it stands (case aside).

    `model` is a folder, or what `regard.load` made of one, if that can say `contextual` vectors.
    """
    held, origin = opened(model, load)
    if not hasattr(held, "contextual"):
        raise ModelError(f"{origin.name} gives a word no vector in its sentence")
    if not sentences:
        raise UsageError("give the sentences in which to look for the word")
    found: list[Occurrence] = []
    vectors: list[Tensor] = []
    for number, sentence in enumerate(sentences):
        ids, memory = held.contextual(sentence)  # memory (S, D)
        side = Side.of(ids, held.tokenizer)
        places = [each for each in _words(side) if each.text.casefold() == word.casefold()]
        if not places:
            raise DataError(f"sentence {number + 1} does not hold the word {word!r}: {sentence[:60]!r}")
        found += [Occurrence(number, side, place) for place in places]
        vectors += [memory[place.first : place.end].mean(0) for place in places]
    return Contexts(word, tuple(found), torch.stack(vectors), origin)


def _words(side: Side) -> tuple[Word, ...]:
    """The words of a side, without its begin and its end."""
    return tuple(word for word in side.words if not side.special[word.first])


def _around(each: Occurrence, reach: int = 2) -> str:
    """The word with its neighbours: `the river bank was wet`."""
    words = _words(each.side)
    place = words.index(each.word)
    return " ".join(word.text for word in words[max(0, place - reach) : place + reach + 1])
