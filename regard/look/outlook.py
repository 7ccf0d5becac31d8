"""What a model thought of coming next: the likeliest pieces with log p, and all others together.

    p_i(τ) = exp(log p_i / τ) / Σ_j exp(log p_j / τ)

which is softmax(logits / τ). The sum over those that are not told one by one is kept for some temperatures τ,
so that the page can weigh anew, exactly, without the whole vocabulary. Used by `trace.py` and `written.py`.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

TEMPERATURES = tuple(step / 5 for step in range(1, 11))  # 0.2 to 2
SHOWN = 20  # pieces that are told one by one


class Top(NamedTuple):
    """Of R rows the likeliest ids, and the rest of the vocabulary."""

    logp: Tensor  # (R, SHOWN), the highest first
    ids: Tensor  # (R, SHOWN)
    rest: Tensor  # (R, len(TEMPERATURES)): log Σ exp(log p / τ) over all others


def top(logp: Tensor) -> Top:
    """The likeliest of logp (R, V); at most SHOWN of them."""
    best, ids = logp.topk(min(SHOWN, logp.shape[1]), -1)
    others = logp.scatter(1, ids, float("-inf"))
    rest = [torch.logsumexp(others / heat, -1) for heat in TEMPERATURES]
    return Top(best, ids, torch.stack(rest, -1))


@dataclass(frozen=True)
class Outlook:
    """One place: what could have come next."""

    pieces: tuple[str, ...]  # the likeliest first
    logp: tuple[float, ...]  # natural logarithms of their probabilities
    rest: tuple[float, ...]  # for each of TEMPERATURES: log Σ exp(log p / τ) over all other pieces

    def at(self, temperature: float) -> tuple[float, ...]:
        """The probabilities of the pieces at one of TEMPERATURES."""
        rest = self.rest[TEMPERATURES.index(temperature)]
        highest = max(self.logp[0] / temperature, rest)
        shares = [math.exp(each / temperature - highest) for each in self.logp]
        whole = math.fsum([*shares, math.exp(rest - highest)])
        return tuple(each / whole for each in shares)


def outlooks(
    tops: Iterable[Top], rows: Iterable[int], tokenizer: Any, *, target: bool = False
) -> tuple[Outlook, ...]:
    """One row of each top, with its pieces."""
    return tuple(
        Outlook(
            tuple(tokenizer.shown(each.ids[row].tolist(), target=target)),
            tuple(each.logp[row].tolist()),
            tuple(each.rest[row].tolist()),
        )
        for each, row in zip(tops, rows, strict=True)
    )
