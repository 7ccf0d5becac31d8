"""Pieces and the words they spell: the edges of a map, and how a map of pieces becomes one of words.

A word's weight as a key is the sum over its pieces, as a query the mean over them (Clark et al. 2019, 3).
Before this file: the tokenizer; after it: everything that is shown.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.text.normalise import SPACE_MARK
from regard.text.tokenizer import Tokenizer

_BYTE = re.compile(r"<0x[0-9A-F]{2}>")


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
    def of(cls, ids: Sequence[int], tokenizer: Tokenizer) -> "Side":
        """The pieces of `ids`, specials and all."""
        tokens = tuple(map(tokenizer.token, ids))
        special = tuple(_spells_nothing(i, token, tokenizer) for i, token in zip(ids, tokens, strict=True))
        words = _group(ids, tokens, special, tokenizer, by_class=True)
        spaced = _group(ids, tokens, special, tokenizer, by_class=False)
        return cls(tokens, special, words, tuple(word for word in spaced if not special[word.first]))


def _spells_nothing(number: int, token: str, tokenizer: Tokenizer) -> bool:
    """A byte alone may be no text, and a space alone is taken for the line's first; yet they spell."""
    return not (tokenizer.decode([number]) or _BYTE.fullmatch(token) or token == SPACE_MARK)


def _group(
    ids: Sequence[int],
    tokens: Sequence[str],
    special: Sequence[bool],
    tokenizer: Tokenizer,
    *,
    by_class: bool,
) -> tuple[Word, ...]:
    """Neighbouring pieces that belong together."""
    starts = [
        i
        for i in range(len(tokens))
        if i == 0
        or special[i]
        or special[i - 1]
        or tokens[i].startswith(SPACE_MARK)
        or (
            by_class
            and _punctuation(tokens[i]) != _punctuation(tokens[i - 1])
            and tokens[i - 1] != SPACE_MARK
        )
    ]
    return tuple(
        Word(tokens[first] if special[first] else tokenizer.decode(ids[first:end]).strip(" "), first, end)
        for first, end in zip(starts, [*starts[1:], len(tokens)], strict=True)
    )


def _punctuation(token: str) -> bool:
    """Whether a piece is punctuation rather than letters, digits, or bytes that spell anything."""
    text = token.removeprefix(SPACE_MARK)
    return (
        bool(text) and not _BYTE.fullmatch(token) and not any(map(str.isalnum, text)) and text.isprintable()
    )


def join_keys(weights: Tensor, words: Sequence[Word]) -> Tensor:
    """weights (..., S) of pieces -> (..., words): what goes to a word is what goes to its pieces."""
    return torch.stack([weights[..., word.first : word.end].sum(-1) for word in words], -1)


def join_queries(weights: Tensor, words: Sequence[Word]) -> Tensor:
    """weights (..., T, S) of pieces -> (..., words, S): a word looks as its pieces do on average."""
    return torch.stack([weights[..., word.first : word.end, :].mean(-2) for word in words], -2)
