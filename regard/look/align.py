"""Which word came from which: one source word for every written one, by cross-attention.

The heads of a layer are averaged, pieces joined to words, the end of the source left out (heads rest there)
and rows made to sum to 1 again. The layer taken is the one whose rows are sharpest: the highest mean of their
largest weights. Text form: Pharaoh's `i-j` pairs, source word - written word, counted from 0, where a word is
what stands between two spaces.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from torch import Tensor

from regard.errors import UsageError
from regard.look.words import Word, join_keys, join_queries

if TYPE_CHECKING:
    from regard.look.look import Look
    from regard.look.maps import Map


@dataclass(frozen=True)
class Alignment:
    """Pairs of words, and the layer that gave them."""

    layer: int
    pairs: tuple[tuple[int, int], ...]  # source word, written word

    def __str__(self) -> str:
        return " ".join(f"{i}-{j}" for i, j in self.pairs)


def align(seen: "Look", layer: int | None = None) -> Alignment:
    """Each written word with the source word it looked at most."""
    layer = sharpest(seen) if layer is None else layer
    source, target = seen.source.spaced, seen.target.spaced
    weights = word_weights(seen.map("cross", layer), source, target)  # (target, source)
    if not weights.numel():
        return Alignment(layer, ())
    return Alignment(layer, tuple((int(i), j) for j, i in enumerate(weights.argmax(-1))))


def sharpest(seen: "Look") -> int:
    """The layer whose cross-attention is the sharpest."""
    layers = [each for each in seen.maps if each.kind == "cross"]
    if not layers:
        raise UsageError("this model has no cross-attention, so that no word can be traced to another")
    source, target = seen.source.spaced, seen.target.spaced

    def sharpness(one: "Map") -> float:
        weights = word_weights(one, source, target)
        return float(weights.amax(-1).mean()) if weights.numel() else 0.0

    return max(layers, key=sharpness).layer


def word_weights(one: "Map", source: tuple[Word, ...], target: tuple[Word, ...]) -> Tensor:
    """The mean of the heads over words (target, source), rows summing to 1."""
    mean = one.weights.mean(0)
    if not source or not target:
        return mean.new_zeros(len(target), len(source))
    weights = join_queries(join_keys(mean, source), target)
    return weights / weights.sum(-1, keepdim=True).clamp(min=1e-9)
