"""Where each written word came from and how sure the model was of it: the value that `tracing.py` makes.

Words and tokens are spans of characters, so that text, tags and terms can be put back where they belong.
Before this file: `tracing.py`; after it: `placing.py`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

Span = tuple[int, int]

_WIDE = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
# A word; in scripts that put no spaces between words, a character; any other sign alone.
_WORD = re.compile(rf"[{_WIDE}]|(?:(?![{_WIDE}])\w)+(?:[-'’.](?:(?![{_WIDE}])\w)+)*|[^\w\s]")
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")


class Spelling(Protocol):
    """What is asked of a tokenizer."""

    def token(self, number: int) -> str: ...


@dataclass(frozen=True)
class Traced:
    """One translation, token by token; a span is of characters of the text it stands in."""

    text: str
    spans: tuple[Span, ...]  # of the T tokens that were written
    probabilities: tuple[float, ...]  # T
    sources: tuple[Span, ...]  # of the S tokens of the source
    weights: tuple[tuple[float, ...], ...]  # (T, S), rows summing to 1

    def share(self, word: Span, source: Span) -> float:
        """How much of what the tokens of `word` looked at lies in `source`, from 0 to 1."""
        rows = [number for number, span in enumerate(self.spans) if _overlap(span, word)]
        seen = [(_overlap(span, source) / max(1, span[1] - span[0])) for span in self.sources]
        total = sum(
            weight * part
            for number in rows
            for weight, part in zip(self.weights[number], seen, strict=True)
            if part
        )
        return total / len(rows) if rows else 0.0

    def probability(self, word: Span) -> float:
        """That the model writes this word here: the product over its tokens."""
        found = 1.0
        for span, probability in zip(self.spans, self.probabilities, strict=True):
            if _overlap(span, word):
                found *= probability
        return found


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
    for number, spelled in enumerate(sizes):
        lead = spelled.startswith(b" ")
        if number == 0 and lead:  # the first word's space is not in the text
            spelled, lead = spelled[1:], False
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
    return token.replace("\u2581", " ").encode()
