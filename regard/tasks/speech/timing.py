"""When each word was said, by the cross-attention of the decoding that wrote it.

    a token's row of weights says where it listened; the cheapest path through all rows that never goes back
    gives each token a stretch of places (dynamic time warping, as Whisper's own word times)

A row of its own before the first token takes the silence there. Weights come from the tape
(`regard.attention.record`); used by `listener.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from regard.text.tokenizer import Tokenizer

Weights = npt.NDArray[np.float32]  # (T, S)
SMOOTH = 3  # places of a running median over each row


@dataclass(frozen=True)
class Word:
    """A word, when it was said in seconds, and how sure the model was of it."""

    text: str
    start: float
    end: float
    probability: float


def aligned(weights: Weights) -> npt.NDArray[np.int64]:
    """The first and last place (T, 2) of every row of weights (T, S): stretches that follow each other.

    Places before the first stretch belong to none.
    """
    rows, places = weights.shape
    middle = weights - weights.mean(1, keepdims=True)
    cost = -np.concatenate(
        [np.zeros((1, places), np.float32), middle / (middle.std(1, keepdims=True) + 1e-9)]
    )
    total = np.full((rows + 1, places), np.inf)
    came = np.zeros((rows + 1, places), np.int64)  # where the stretch of a row that ends there begins
    total[0] = np.cumsum(cost[0])
    for row in range(1, rows + 1):
        sums = np.concatenate([[0.0], np.cumsum(cost[row])])
        # A stretch from `first` on costs what led to the place before it, and its own sum.
        before = np.concatenate([[0.0 if row == 1 else np.inf], total[row - 1, :-1]]) - sums[:-1]
        best = np.minimum.accumulate(before)
        new = np.concatenate([[True], before[1:] < best[:-1]])
        came[row] = np.maximum.accumulate(np.where(new, np.arange(places), 0))
        total[row] = best + sums[1:]
    spans = np.zeros((rows, 2), np.int64)
    last = places - 1
    for row in range(rows, 0, -1):
        spans[row - 1] = came[row, last], last
        last = max(0, int(came[row, last]) - 1)
    return spans


def smoothed(weights: Weights) -> Weights:
    """Each row (T, S) under a running median, which takes away single spikes."""
    if weights.shape[1] < SMOOTH:
        return weights
    around = np.pad(weights, ((0, 0), (SMOOTH // 2, SMOOTH // 2)), mode="reflect")
    return np.median(np.lib.stride_tricks.sliding_window_view(around, SMOOTH, 1), -1).astype(np.float32)


def words_of(
    ids: Sequence[int],
    logp: Sequence[float],
    weights: Weights,
    tokenizer: Tokenizer,
    place: float,
    start: float,
) -> list[Word]:
    """The words of ids that were written with logp and listened as weights (T or T + 1, S) say.

    A place lasts `place` seconds, the first begins at `start`; a row beyond the ids is the end's.
    """
    if not ids:
        return []
    spans = aligned(smoothed(weights))
    groups: list[list[int]] = []
    apart = True
    for number, token in enumerate(ids):
        raw = tokenizer.spell([token])
        if (apart or raw[:1].isspace()) and not (raw.isspace() and groups and apart):
            groups.append([])
        groups[-1].append(number)
        apart = raw[-1:].isspace()
    found = []
    for group in groups:
        text = tokenizer.decode([ids[number] for number in group]).strip()
        said = [number for number in group if tokenizer.spell([ids[number]]).strip()]
        if text and said:
            begin, end = spans[said[0], 0], spans[said[-1], 1] + 1
            sure = float(np.exp(np.mean([logp[number] for number in said])))
            found.append(Word(text, start + float(begin) * place, start + float(end) * place, sure))
    return found
