"""Where each written word came from and how sure the model was of it: the value that `tracing.py` makes.

Words and tokens are spans of characters, so that text, tags and terms can be put back where they belong. Of
the weights only what is asked later is kept, a few numbers a word: many translations wait at a time. Before
this file: `tracing.py`; after it: `placing.py`.
"""

import re
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from regard.text.vocabulary import TAG

Span = tuple[int, int]

_WIDE = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
# A word; in scripts that put no spaces between words, a character; any other sign alone.
_WORD = re.compile(rf"[{_WIDE}]|(?:(?![{_WIDE}])\w)+(?:[-'’.](?:(?![{_WIDE}])\w)+)*|[^\w\s]")
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")


class Spelling(Protocol):
    """What is asked of a tokenizer."""

    def token(self, number: int) -> str: ...


@dataclass(frozen=True, slots=True)
class Tokens:
    """A text and where each of its tokens stands in it."""

    text: str
    spans: Sequence[Span]


@dataclass(frozen=True, slots=True)
class Traced:
    """One translation word by word; words are counted as `words` finds them."""

    text: str
    sure: "array[float]"  # of each written word: the product of its tokens' probabilities
    home: "array[int]"  # the number of the source word that it looked at most
    share: "array[float]"  # how much of its look went there, from 0 to 1
    seen: "array[int]"  # of each source word: the number of the written word that looked at it most

    @classmethod
    def of(
        cls, written: Tokens, source: Tokens, probabilities: Sequence[float], weights: ArrayLike
    ) -> "Traced":
        """From the probabilities (T,) and the weights (T, S) of tokens; a row sums to 1.

        A word looks as its tokens do on average; of a source token that two words share, each has its part.
        """
        theirs, ours = words(source.text) or [(0, len(source.text))], words(written.text)
        sure = [1.0] * len(ours)
        rows, columns = meetings(written.spans, ours), meetings(source.spans, theirs)
        for token, word in rows:
            sure[word] *= probabilities[token]
        table = np.asarray(weights, dtype=np.float32).reshape(len(written.spans), len(source.spans))
        table = _sums(table, [(token, word, 1.0) for token, word in rows], len(ours))  # (W, S)
        table /= np.maximum(np.bincount([word for _, word in rows], minlength=len(ours)), 1)[:, None]
        parts = [(t, w, _overlap(source.spans[t], theirs[w]) / _size(source.spans[t])) for t, w in columns]
        table = _sums(table.T, parts, len(theirs)).T  # (W, source words)
        if not ours:
            return cls(written.text, array("f"), array("i"), array("f"), array("i", [0] * len(theirs)))
        home, seen = table.argmax(1), table.argmax(0)
        share = table[np.arange(len(ours)), home]
        return cls(
            written.text,
            array("f", sure),
            array("i", home.tolist()),
            array("f", share.tolist()),
            array("i", seen.tolist()),
        )


def meetings(tokens: Sequence[Span], places: Sequence[Span]) -> list[tuple[int, int]]:
    """The pairs (token, word) that share a character; both come in their order."""
    found, first = [], 0
    for number, (start, end) in enumerate(tokens):
        while first < len(places) and places[first][1] <= start:
            first += 1
        word = first
        while start < end and word < len(places) and places[word][0] < end:
            found.append((number, word))
            word += 1
    return found


def _sums(table: NDArray[Any], parts: Sequence[tuple[int, int, float]], count: int) -> NDArray[Any]:
    """Rows of a table (R, C) added up: those that go to each of `count` places, each with its factor."""
    found = np.zeros((count, table.shape[1]), np.float32)
    if parts and table.shape[1]:
        parts = sorted(parts, key=lambda part: part[1])
        rows, places, factors = (list(column) for column in zip(*parts, strict=True))
        starts = np.flatnonzero(np.diff(places, prepend=-1))
        scaled = table[rows] * np.asarray(factors, np.float32)[:, None]
        found[np.asarray(places)[starts]] = np.add.reduceat(scaled, starts, axis=0)
    return found


def _size(span: Span) -> int:
    return max(1, span[1] - span[0])


def words(text: str) -> list[Span]:
    """The spans of the words of a text, punctuation each by itself.

    >>> text = "Don't stop, 3.5 km!"
    >>> [text[a:b] for a, b in words(text)]
    ["Don't", 'stop', ',', '3.5', 'km', '!']
    """
    return [found.span() for found in _WORD.finditer(text)]


def _overlap(one: Span, other: Span) -> int:
    return max(0, min(one[1], other[1]) - max(one[0], other[0]))


def token_spans(tokenizer: Spelling, ids: Sequence[int], text: str) -> tuple[Span, ...]:
    """The characters of `text` that each id spells, its space not counted; a part of a character is it all.

    >>> from regard.text.tokenizer import Tokenizer
    >>> tokenizer = Tokenizer.train(["the cat"], vocab_size=0)
    >>> token_spans(tokenizer, tokenizer.encode("a 狗"), "a 狗")[-3:]
    ((2, 3), (2, 3), (2, 3))
    """
    sizes = [_bytes(tokenizer.token(number)) for number in ids]
    place = [0]  # of each byte, which character it belongs to
    for number, character in enumerate(text):
        place += [number] * len(character.encode("utf-8", "surrogatepass"))
    place.append(len(text))
    spans: list[Span] = []
    at = 0
    first_word = True
    for spelled in sizes:
        if not spelled:  # a tag, which stands for no text
            spans.append((0, 0))
            continue
        lead = spelled.startswith(b" ")
        if first_word and lead:  # the first word's space is not in the text
            spelled, lead = spelled[1:], False
        first_word = False
        start, end = at + lead, at + len(spelled)
        at = end
        first = place[min(start + 1, len(place) - 1)]
        last = place[min(end, len(place) - 1)] + 1
        last = last if end > start else first + 1  # a space alone belongs to the word that it begins
        spans.append((first, max(first, min(last, len(text)))))
    return tuple(spans)


def _bytes(token: str) -> bytes:
    """What a piece of the vocabulary spells; U+2581 is the space."""
    if byte := _BYTE.fullmatch(token):
        return bytes([int(byte[1], 16)])
    if TAG.fullmatch(token):
        return b""
    return token.replace("\u2581", " ").encode()
