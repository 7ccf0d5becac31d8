"""The rules for which pairs training leaves out; `store.py` obeys them, `check.py` reports them.

A pair is judged by its tokens: none on a side (empty), too many for the model (over-long), or far
more on one side than on the other (ratio). Comes after `corpus.py`.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, Protocol

from regard.config import DataConfig
from regard.data.corpus import Pair
from regard.text.normalise import normalise

EMPTY, OVER_LONG, RATIO = "empty", "over-long", "ratio"
REASONS = (EMPTY, OVER_LONG, RATIO)

_CHUNK_PAIRS = 4096
_CHUNK_CHARACTERS = 1 << 21
# No vocabulary gets this much text into a token on average, so that a line with more per allowed
# token is over-long before it is tokenised. Keeps lines of megabytes away from the tokenizer.
CHARACTERS_A_TOKEN = 64


class Encoder(Protocol):
    """What the data room needs of a tokenizer."""

    @property
    def vocab_size(self) -> int: ...
    @property
    def target_vocab_size(self) -> int: ...
    @property
    def tags(self) -> Mapping[str, int]: ...
    def encode_batch(self, texts: list[str]) -> list[list[int]]: ...
    def encode_targets(self, texts: list[str]) -> list[list[int]]: ...
    def to_json(self) -> str: ...
    def token(self, number: int) -> str: ...


class Judged(NamedTuple):
    """A pair, its ids without special tokens, and why it is left out (None: it is kept)."""

    pair: Pair
    src: list[int]
    tgt: list[int]
    reason: str | None


def verdict(src_tokens: int, tgt_tokens: int, rules: DataConfig) -> str | None:
    """Why a pair with so many tokens is left out, or None.

    The ratio counts the text alone; the length counts what the model is fed, its end mark included.

    >>> verdict(10, 95, DataConfig(max_length=256, max_ratio=9.0))
    'ratio'
    """
    fewer, more = sorted((src_tokens, tgt_tokens))
    if fewer == 0:
        return EMPTY
    if more + 1 > rules.max_length:
        return OVER_LONG
    return RATIO if more > rules.max_ratio * fewer else None


def judge(pairs: Iterable[Pair], tokenizer: Encoder, rules: DataConfig) -> Iterator[list[Judged]]:
    """Every pair in order with its ids and its verdict, in chunks of bounded size."""
    for chunk in _chunks(pairs):
        early = [_before_tokens(pair, rules) for pair in chunk]
        texts = [
            ("", "") if reason else (pair.src, pair.tgt) for pair, reason in zip(chunk, early, strict=True)
        ]
        sources = tokenizer.encode_batch([src for src, _ in texts])
        targets = tokenizer.encode_targets([tgt for _, tgt in texts])
        yield [
            _judged(pair, src, tgt, reason or verdict(len(src), len(tgt), rules), tokenizer, rules)
            for pair, reason, src, tgt in zip(chunk, early, sources, targets, strict=True)
        ]


def _judged(
    pair: Pair, src: list[int], tgt: list[int], reason: str | None, tokenizer: Encoder, rules: DataConfig
) -> Judged:
    """With the token that a group's sources have in front; it must find room, too."""
    if pair.group is not None and pair.group.tag:
        src = [tokenizer.tags[pair.group.tag], *src]
        reason = reason or (OVER_LONG if len(src) + 1 > rules.max_length else None)
    return Judged(pair, src, tgt, reason)


def _before_tokens(pair: Pair, rules: DataConfig) -> str | None:
    """What can be said without tokenising: blank, or longer than any vocabulary could shrink."""
    if not pair.src.strip() or not pair.tgt.strip():
        return EMPTY
    most = CHARACTERS_A_TOKEN * rules.max_length
    # Normalising shrinks runs of spaces; it is worth its time only where a line looks too long.
    too_long = any(len(text) > most and len(normalise(text)) > most for text in (pair.src, pair.tgt))
    return OVER_LONG if too_long else None


def _chunks(pairs: Iterable[Pair]) -> Iterator[list[Pair]]:
    """Pairs in lists, bounded in number and in characters, so that long lines cost no memory."""
    chunk: list[Pair] = []
    characters = 0
    for pair in pairs:
        chunk.append(pair)
        characters += len(pair.src) + len(pair.tgt)
        if len(chunk) == _CHUNK_PAIRS or characters > _CHUNK_CHARACTERS:
            yield chunk
            chunk, characters = [], 0
    if chunk:
        yield chunk
