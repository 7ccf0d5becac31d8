"""The alignment and the probabilities of what a search wrote, by one forced pass over it.

With a cache or without, a model computes the same (a law), so the pass gives the cross-attention of that
search; it is cheaper than watching the search and serves any engine. The layer taken is the one whose rows
are sharpest, as `regard.look` takes it; the end of the source, where heads rest, is left out. Before this
file: `reading.py`; after it: `align.py`.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from regard.attention.record import attentions, record
from regard.data.inputs import pad_sources
from regard.tasks.translation.align import Tokens, Traced, token_spans
from regard.tasks.translation.retrace import retrace, writes_at_once

if TYPE_CHECKING:
    from regard.tasks.translation.translator import Translator

NUMBERS = 1 << 20  # that one pass may hold of logits, and of weights; more rows take more passes
BYTES = 16  # that each of them takes: scores, weights, and what is made of them
Taking = Callable[[int], AbstractContextManager[None]]  # a server lends memory to its threads
Written = tuple[Sequence[int], str]  # ids, and the text that they spell


def trace(
    translator: "Translator", sources: Sequence[str], written: Sequence[Written], taking: Taking | None = None
) -> list[Traced]:
    """Each source with the ids and the text that were written for it, traced; `taking` has so many bytes."""
    tokenizer = translator.tokenizer
    read = tokenizer.encode_batch(list(sources))
    spans = {source: token_spans(tokenizer, ids, source) for source, ids in zip(sources, read, strict=True)}
    found = []
    for rows, numbers in _passes(translator, read, [ids for ids, _ in written]):
        with taking(BYTES * numbers) if taking else nullcontext():
            seen = weights_of(translator, [read[row] for row in rows], [written[row][0] for row in rows])
        for row, (probabilities, weights) in zip(rows, seen, strict=True):
            ids, text = written[row]
            source = Tokens(sources[row], spans[sources[row]])
            written_tokens = Tokens(text, token_spans(tokenizer, ids, text))
            found.append(Traced.of(written_tokens, source, probabilities, weights.numpy()))
    return found


def _passes(
    translator: "Translator", read: Sequence[list[int]], written: Sequence[Sequence[int]]
) -> list[tuple[range, int]]:
    """The rows in handfuls whose weights may be held at a time, and the numbers of each, logits included."""
    heads = sum(each.n_heads for each in attentions(translator.model))
    longest = 1 + max((len(ids) for ids in (*read, *written)), default=0)
    row = max(1, heads * longest * longest)
    rows = max(1, NUMBERS // row)
    handfuls = [range(first, min(first + rows, len(read))) for first in range(0, len(read), rows)]
    logits = longest * translator.tokenizer.target_vocab_size
    return [(each, min(NUMBERS, logits * len(each)) + row * len(each)) for each in handfuls]


def weights_of(
    translator: "Translator", read: Sequence[list[int]], written: Sequence[Sequence[int]]
) -> list[tuple[list[float], Tensor]]:
    """Of each row the probabilities (T,) of what was written, and where it looked (T, S), in one pass."""
    if writes_at_once(translator.model):
        sizes = [(len(ids), len(source)) for ids, source in zip(written, read, strict=True)]
        seen = retrace(translator, read, written)
        return [(sure, _sharpest(each, size)) for (sure, each), size in zip(seen, sizes, strict=True)]
    with torch.inference_mode(), record() as tape:
        logp = _forced(translator, read, written)
    layers = [
        tape[site.name][-1].mean(1).cpu() for site in tape.sites() if site.kind == "cross"
    ]  # (B, T, S) each
    found = []
    for row, (ids, source) in enumerate(zip(written, read, strict=True)):
        size = len(ids), len(source)
        best = _sharpest([layer[row, : size[0], : size[1]] for layer in layers], size)
        found.append((logp[row, : size[0]].exp().tolist(), best))
    return found


def _forced(translator: "Translator", read: Sequence[list[int]], written: Sequence[Sequence[int]]) -> Tensor:
    """log p (B, T) of what was written, each token after those before it."""
    model: Any = translator.model
    begin, end = translator.tokenizer.begin_id, translator.tokenizer.end_id
    device = next(iter(model.parameters())).device
    inputs = pad_sources([[*ids, end] for ids in read]).to(device)
    tgt = pad_sources([[begin, *ids] for ids in written]).ids.to(device)
    hidden = model(inputs, tgt[:, :-1])  # (B, T, D)
    width = len(read) * translator.tokenizer.target_vocab_size
    found = []
    for part, ids in zip(
        *(each.split(max(1, NUMBERS // width), 1) for each in (hidden, tgt[:, 1:])), strict=True
    ):
        logits = model.project(part).float()  # (B, T', V)
        found.append(logits.gather(-1, ids[..., None])[..., 0] - logits.logsumexp(-1))
    return torch.cat(found, 1)


def _sharpest(layers: Sequence[Tensor], size: tuple[int, int]) -> Tensor:
    """Of weights (T, S) of several layers those that look at the fewest places; without any, the diagonal."""
    if not layers or not all(size):
        rows = torch.arange(size[0])
        diagonal = (rows * size[1] // max(1, size[0])).clamp(max=max(0, size[1] - 1))
        return (torch.arange(size[1]) == diagonal[:, None]).float()
    scaled = [each / each.sum(-1, keepdim=True).clamp(min=1e-9) for each in layers]
    return max(scaled, key=lambda each: float(each.amax(-1).mean()))
