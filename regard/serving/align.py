"""Where each written word came from and how sure the model was of it.

One forced pass over the source and what the search wrote gives the cross-attention and the probabilities of
that search: with a cache or without, a model computes the same (a law), so this is cheaper than watching
the search and serves any engine. The layer taken is the one whose rows are sharpest, as `regard.look` takes
it; the end of the source, where heads rest, is left out. Before this file: `engine.py`; after it:
`markup.py`.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from regard.attention.record import record
from regard.data.batch import pad_sources
from regard.decoding.translator import Translator
from regard.text.tokenizer import Tokenizer

Span = tuple[int, int]

_WIDE = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
# A word; in scripts that put no spaces between words, a character; any other sign alone.
_WORD = re.compile(rf"[{_WIDE}]|(?:(?![{_WIDE}])\w)+(?:[-'’.](?:(?![{_WIDE}])\w)+)*|[^\w\s]")
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")


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


def trace(
    translator: Translator, sources: Sequence[str], written: Sequence[tuple[Sequence[int], str]]
) -> list[Traced]:
    """Each source with the ids and the text that were written for it, traced in one pass."""
    tokenizer = translator.tokenizer
    read = tokenizer.encode_batch(list(sources))
    with torch.inference_mode(), record() as tape:
        logp = _forced(translator, read, [ids for ids, _ in written])
    layers = [tape[name][-1].mean(1) for name in tape.names() if name.endswith("cross")]  # (B, T, S) each
    found = []
    for row, (source, (ids, text)) in enumerate(zip(sources, written, strict=True)):
        size = len(ids), len(read[row])
        found.append(
            Traced(
                text,
                token_spans(tokenizer, ids, text),
                tuple(logp[row, : size[0]].exp().tolist()),
                token_spans(tokenizer, read[row], source),
                _sharpest([layer[row, : size[0], : size[1]] for layer in layers], size),
            )
        )
    return found


def _forced(translator: Translator, read: Sequence[list[int]], written: Sequence[Sequence[int]]) -> Tensor:
    """log p (B, T) of what was written, each token after those before it."""
    model: Any = translator.model
    begin, end = translator.tokenizer.begin_id, translator.tokenizer.end_id
    device = next(iter(model.parameters())).device
    src, src_mask = pad_sources([[*ids, end] for ids in read])
    tgt, _ = pad_sources([[begin, *ids] for ids in written])
    tgt = tgt.to(device)
    hidden = model(src.to(device), src_mask.to(device), tgt[:, :-1])  # (B, T, D)
    logp: Tensor = model.project(hidden).float().log_softmax(-1)  # (B, T, V)
    return logp.gather(-1, tgt[:, 1:, None])[..., 0]


def _sharpest(layers: Sequence[Tensor], size: tuple[int, int]) -> tuple[tuple[float, ...], ...]:
    """Of weights (T, S) of several layers those that look at the fewest places; without any, the diagonal."""
    if not layers or not all(size):
        diagonal = [min(size[1] - 1, t * size[1] // max(1, size[0])) for t in range(size[0])]
        return tuple(tuple(float(s == place) for s in range(size[1])) for place in diagonal)
    scaled = [each / each.sum(-1, keepdim=True).clamp(min=1e-9) for each in layers]
    best = max(scaled, key=lambda each: float(each.amax(-1).mean()))
    return tuple(tuple(row) for row in best.tolist())


def token_spans(tokenizer: Tokenizer, ids: Sequence[int], text: str) -> tuple[Span, ...]:
    """The characters of `text` that each id spells, its space not counted; a part of a character is it all.

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
        spans.append((first, max(first, min(last, len(text)))) if end > start else (first, first))
    return tuple(spans)


def _bytes(token: str) -> bytes:
    """What a piece of the vocabulary spells; U+2581 is the space."""
    if byte := _BYTE.fullmatch(token):
        return bytes([int(byte[1], 16)])
    return token.replace("\u2581", " ").encode()
