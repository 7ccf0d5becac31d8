"""The alignment and the probabilities of what a search wrote, by one forced pass over it.

With a cache or without, a model computes the same (a law), so the pass gives the cross-attention of that
search; it is cheaper than watching the search and serves any engine. The layer taken is the one whose rows
are sharpest, as `regard.look` takes it; the end of the source, where heads rest, is left out. Before this
file: `engine.py`; after it: `align.py`.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from regard.attention.record import record
from regard.data.batch import pad_sources
from regard.decoding.translator import Translator
from regard.serving.align import Traced, token_spans


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
