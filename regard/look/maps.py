"""What one attention did over a whole sentence: the calls of a trace, laid together as one map.

Kinds: `encoder` (source looks at source), `decoder` (what was read looks back), `cross` (what was written
looks at the source). Before this file: `trace.py`; after it: `look.py`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.attention.record import Vectors
from regard.attention.site import Site
from regard.look.trace import Heard, Trace

KINDS = ("encoder", "decoder", "cross")


@dataclass(frozen=True)
class Map:
    """The weights of every head of one attention, and what they were made from, where it was taped."""

    site: Site
    weights: Tensor  # (H, T, S)
    vectors: Vectors | None = None  # without the batch: q (H, T, K), out (T, D) and so on

    @property
    def name(self) -> str:
        """As on the tape: decoder.3.cross."""
        return self.site.name

    @property
    def kind(self) -> str:
        """encoder, decoder or cross."""
        return self.site.view

    @property
    def layer(self) -> int:
        """Counted from 0."""
        return self.site.layer or 0

    @property
    def sides(self) -> tuple[str, str]:
        """Whose pieces the queries and the keys are. A decoder reads begin, w1 while it writes w1, w2."""
        return self.site.queries, self.site.keys

    @property
    def score(self) -> str:
        """How scores came about, as far as q and k show it: dot, scaled-dot, or other."""
        if self.vectors is None:
            return "other"
        q, k, scores = self.vectors.q, self.vectors.k, self.vectors.scores
        products = q @ k.transpose(-2, -1)  # (H, T, S)
        seen = self.weights > 0
        for kind, factor in (("scaled-dot", q.shape[-1] ** -0.5), ("dot", 1.0)):
            if torch.allclose((products * factor)[seen], scores[seen], rtol=1e-3, atol=1e-3):
                return kind
        return "other"


def maps(trace: Trace) -> tuple[Map, ...]:
    """Every map of a trace: encoder, decoder, cross, each from the first layer to the last."""
    return maps_of((*trace.encoder.values(), *trace.decoder.values()))


def maps_of(attentions: Iterable[Sequence[Heard]]) -> tuple[Map, ...]:
    """The maps of attentions, each with its calls of one row; a kind that is not ours comes last."""
    found = [_map(calls) for calls in attentions]
    kinds = [*KINDS, *(each.kind for each in found if each.kind not in KINDS)]
    return tuple(sorted(found, key=lambda each: (kinds.index(each.kind), each.layer)))


def _map(calls: Sequence[Heard]) -> Map:
    causal = calls[0].site.causal
    weights = _stack([call.weights[0] for call in calls], causal=causal)
    vectors = [call.vectors for call in calls if call.vectors is not None]
    joined = _join(vectors, causal=causal) if len(vectors) == len(calls) else None
    if joined is not None and joined.scores.shape != weights.shape:
        joined = None  # keys were projected to rows after they were taped (Linformer)
    return Map(calls[0].site, weights, joined)


def _stack(calls: Sequence[Tensor], *, causal: bool) -> Tensor:
    """Calls (H, T_i, S_i) one below the other: (H, T, S).

    Where a decoder holds only its newest places, the last column of a row is still its own place.
    """
    rows = sum(call.shape[1] for call in calls)
    keys = max(rows if causal else 0, max(call.shape[2] for call in calls))
    table = calls[0].new_zeros(calls[0].shape[0], rows, keys)
    end = 0
    for call in calls:
        start, end = end, end + call.shape[1]
        first = max(0, end - call.shape[2]) if causal else 0
        table[:, start:end, first : first + call.shape[2]] = call
    return table


def _join(calls: Sequence[Vectors], *, causal: bool) -> Vectors:
    """The vectors of all calls as those of one. Only the newest key of a causal call was kept."""
    along = calls if causal else calls[:1]
    biases = [call.bias[0] for call in calls if call.bias is not None]
    return Vectors(
        q=torch.cat([call.q[0] for call in calls], 1),
        k=torch.cat([call.k[0] for call in along], 1),
        scores=_stack([call.scores[0] for call in calls], causal=causal),
        v=torch.cat([call.v[0] for call in along], 1),
        out=torch.cat([call.out[0] for call in calls], 0),
        bias=_stack(biases, causal=causal) if biases else None,
    )
