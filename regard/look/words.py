"""Pieces and the words they spell: the edges of a map, and how a map of pieces becomes one of words.

A word's weight as a key is the sum over its pieces, as a query the mean over them (Clark et al. 2019, 3).
Before this file: the tokenizer; after it: everything that is shown.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.text.normalise import LINE_MARK, SPACE_MARK
from regard.text.tokenizer import Tokenizer

SILENT = "∅"  # a place that says nothing
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
_BYTES = re.compile(r"(<0x[0-9A-F]{2}>)+")  # a part of a character


@dataclass(frozen=True)
class Word:
    """The pieces from `first` to before `end`, and what they spell together."""

    text: str
    first: int
    end: int


@dataclass(frozen=True)
class Side:
    """One edge of a map: pieces as the vocabulary has them, and the words they spell."""

    tokens: tuple[str, ...]
    special: tuple[bool, ...]  # begin, end, padding: they spell nothing
    words: tuple[Word, ...]  # punctuation stands alone
    spaced: tuple[Word, ...]  # what stands between spaces; specials are left out

    @classmethod
    def of(cls, ids: Sequence[int], tokenizer: Tokenizer, *, target: bool = False) -> "Side":
        """The pieces of `ids`, specials and all; an imported model may have other pieces for its target."""
        silent = {*tokenizer.specials.never, *tokenizer.specials[:3]}
        tokens = tuple(tokenizer.shown(ids, target=target))
        special = tuple(number in silent for number in ids)
        words = _group(tokens, special, by_class=True)
        spaced = _group(tokens, special, by_class=False)
        return cls(tokens, special, words, tuple(word for word in spaced if not special[word.first]))


def _group(tokens: Sequence[str], special: Sequence[bool], *, by_class: bool) -> tuple[Word, ...]:
    """Neighbouring pieces that belong together."""
    starts = [
        i
        for i in range(len(tokens))
        if i == 0
        or special[i]
        or special[i - 1]
        or tokens[i].startswith((SPACE_MARK, LINE_MARK))
        or tokens[i - 1].endswith(LINE_MARK)
        or (by_class and tokens[i - 1] != SPACE_MARK and _turns(tokens[i - 1], tokens[i]))
    ]
    return tuple(
        Word(tokens[first] if special[first] else _spelled(tokens[first:end]), first, end)
        for first, end in zip(starts, [*starts[1:], len(tokens)], strict=True)
    )


def _spelled(tokens: Sequence[str]) -> str:
    """What pieces spell; bytes are spelled together."""
    parts = (
        bytes.fromhex("".join(_BYTE.findall(token))) if _BYTES.fullmatch(token) else token.encode()
        for token in tokens
    )
    return b"".join(parts).decode("utf-8", "replace").replace(SPACE_MARK, " ").strip(" ")


def _turns(left: str, right: str) -> bool:
    """Whether one of two neighbours is punctuation and the other is not."""
    return _punctuation(left) != _punctuation(right)


def _punctuation(token: str) -> bool:
    """Whether a piece is punctuation rather than letters, digits, or bytes that spell anything."""
    text = token.removeprefix(SPACE_MARK)
    return (
        bool(text) and not _BYTES.fullmatch(token) and not any(map(str.isalnum, text)) and text.isprintable()
    )


def join_keys(weights: Tensor, words: Sequence[Word]) -> Tensor:
    """weights (..., S) of pieces -> (..., words): what goes to a word is what goes to its pieces."""
    return torch.stack([weights[..., word.first : word.end].sum(-1) for word in words], -1)


def join_queries(weights: Tensor, words: Sequence[Word]) -> Tensor:
    """weights (..., T, S) of pieces -> (..., words, S): a word looks as its pieces do on average."""
    return torch.stack([weights[..., word.first : word.end, :].mean(-2) for word in words], -2)
