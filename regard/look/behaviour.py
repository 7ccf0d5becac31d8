"""What a head does, in a few numbers: how sharply it looks, and at which place.

    entropy   H_t = -Σ_j a_tj log2 a_tj, the mean over queries, in bits
    spread    H_t over that of even weights on what is seen: 0 one place, 1 all alike
    previous, next, same, first, last   mean weight on that place

The heads of a trained encoder often settle on one of these (Voita et al. 2019; Clark et al. 2019).
"""

from dataclasses import dataclass

from torch import Tensor

TYPICAL = 0.4  # a head that gives one place this much of its weight is named after it
EVEN = 0.75  # a head whose entropy is this share of the highest possible is spread


@dataclass(frozen=True)
class Behaviour:
    """One head's habits."""

    kind: str  # previous, next, same, first, last, spread; or content, where no place explains it
    entropy: float  # bits
    shares: dict[str, float]  # of the weight, on each place; and `spread`


def behaviour(weights: Tensor) -> Behaviour:
    """The habits of one head from its weights (T, S); rows that see nothing are left out.

    >>> import torch
    >>> behaviour(torch.eye(5)).kind, behaviour(torch.full((5, 5), 0.2)).kind
    ('same', 'spread')
    """
    weights = weights.double()
    seeing = weights.sum(-1) > 0.5
    bits = -(weights.clamp(min=1e-12).log2() * weights).sum(-1)[seeing]  # (T',)
    visible = (weights > 0).sum(-1)[seeing].clamp(min=2).double().log2()
    shares = {
        "previous": _mean(weights.diagonal(-1)),
        "next": _mean(weights.diagonal(1)),
        "same": _mean(weights.diagonal()),
        "first": _mean(weights[seeing, 0]),
        "last": _mean(weights[seeing, -1]),
        "spread": _mean(bits / visible),
    }
    return Behaviour(_named(shares), _mean(bits), shares)


def _named(shares: dict[str, float]) -> str:
    places = {place: share for place, share in shares.items() if place != "spread"}
    likeliest = max(places, key=places.__getitem__)
    if places[likeliest] >= TYPICAL:
        return likeliest
    return "spread" if shares["spread"] >= EVEN else "content"


def _mean(numbers: Tensor) -> float:
    return float(numbers.mean()) if numbers.numel() else 0.0
