"""How well a model foresees a text: every token asked for once, in rows of what it sees at once.

    loss            -1/N Σ ln p(token | those before it in its row)       nats a token
    bits per byte   Σ -log2 p / bytes of the text                         whatever the tokens are
    perplexity      e^loss

No window slides, so that a figure is comparable with others of the same rows. Used by `validation.py` while a
model learns and by `evaluate.py` afterwards.
"""

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.data.rows import Ids, Spans
from regard.measure.score import Score
from regard.tasks.language.feed import row_batch
from regard.text.tokenizer import Tokenizer

TOKENS = 4096  # in a batch, if a row is not longer
LOGITS = 2**22  # at once


def batches(spans: Spans) -> Iterator[Spans]:
    """Rows that are scored together."""
    each = max(1, TOKENS // int(np.ptp(spans, 1).max())) if len(spans) else 1
    yield from (spans[start : start + each] for start in range(0, len(spans), each))


def nats(model: Any, ids: Ids, spans: Spans, tokenizer: Tokenizer, device: torch.device) -> float:
    """What the tokens of some rows cost together."""
    batch = row_batch(ids, spans, tokenizer.specials).to(device)
    hidden = model(batch.inputs)[batch.mask]  # (N, D)
    goals, total = batch.goals[batch.mask], 0.0
    rows = max(1, LOGITS // len(model.output_weight))
    for start in range(0, len(goals), rows):
        logits: Tensor = model.project(hidden[start : start + rows]).float()
        total += float(F.cross_entropy(logits, goals[start : start + rows], reduction="sum"))
    return total


def spelled(ids: Iterable[int], tokenizer: Tokenizer) -> int:
    """The bytes that some tokens stand for."""
    return len(tokenizer.spell(ids))


def scores(cost: float, tokens: int, size: int) -> dict[str, Score]:
    """The scores of `tokens` that cost so many nats together and are `size` bytes of text."""
    loss = cost / tokens
    bits = Score(cost / math.log(2) / max(1, size), higher=False, label="bits per byte")
    perplexity = Score(math.exp(min(loss, 700.0)), higher=False, digits=2)
    return {
        "loss": Score(loss, higher=False, digits=4, count=tokens),
        "bits_per_byte": bits,
        "perplexity": perplexity,
    }
