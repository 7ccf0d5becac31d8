"""What a decoder would write and what CTC hears, token by token: a model around a model.

    score(c | h) = (1 - λ) log p_decoder(c | h) + λ log p_CTC(c | h)
    p_CTC(c | h) = p(a text that begins with h c) / p(one that begins with h)       of all paths of CTC

Hori et al. 2017; the end's share is that of the paths that say h and nothing more. So the text neither ends
before all is said nor goes round in circles, and is usable as soon as CTC is, long before a decoder has found
where to listen. Before this file: `regard.models.speech`, whose `spoken` is CTC; after it: whoever walks
(`regard.decoding.search`).
"""

from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.decoding.bending import Bent
from regard.models.protocol import StepState
from regard.text.tokenizer import Specials

S = TypeVar("S", bound=StepState)
NEVER = -1e30  # log p of what cannot be; finite, so that two of them can be subtracted
TINY = 1e-300  # no probability is taken to be less


@dataclass(frozen=True)
class Prefix(Generic[S]):
    """A state, and CTC's paths that have said exactly what a row has written, place by place.

    `heard` (B, S, V) is what CTC hears at each place. log p after t of S places, (B, S + 1): `voiced` ends in
    a token, `silent` in none. `total` (B,): log p of all texts that begin so; `last` (B,): the newest token.
    """

    inner: S
    heard: Tensor
    voiced: Tensor
    silent: Tensor
    total: Tensor
    last: Tensor
    begun: bool = False

    def select(self, rows: Tensor) -> "Prefix[S]":
        """The given rows, in that order."""
        names = ("heard", "voiced", "silent", "total", "last")
        parts: dict[str, Any] = {name: getattr(self, name).index_select(0, rows) for name in names}
        return replace(self, inner=self.inner.select(rows), **parts)


class Joint(Bent, Generic[S]):
    """A model that writes what CTC hears too, at a share of it; `specials.pad` is CTC's id of nothing."""

    def __init__(self, model: Any, share: float, specials: Specials) -> None:
        self.model, self.share, self.specials = model, share, specials

    def begin(self, inner: S, spoken: Tensor, real: Tensor | None = None) -> Prefix[S]:
        """Before the first token, of CTC's log p (B, S, V) at places that are real where (B, S) says so."""
        blank, heard = self.specials.pad, spoken.double().exp()
        if real is not None:  # beyond its end a recording says nothing for certain
            heard = heard.masked_fill(~real[:, :, None], 0.0)
            heard[:, :, blank].masked_fill_(~real, 1.0)
        silent = F.pad(_log(heard[:, :, blank]).cumsum(1), (1, 0))
        rows = silent.new_zeros(len(silent))
        never = torch.full_like(silent, NEVER)
        return Prefix(inner, heard, never, silent, rows, rows.long() + blank)

    def bend(self, ids: Tensor, state: Prefix[S], logits: Tensor, inner: S) -> tuple[Tensor, Prefix[S]]:
        """The scores (B, V) of what may come after ids (B,), of which the first were no text."""
        state = replace(self._grown(ids, state) if state.begun else state, inner=inner, begun=True)
        heard = self.follows(state).to(logits.dtype)
        return (1 - self.share) * logits.log_softmax(-1) + self.share * heard, state

    def follows(self, state: Prefix[S]) -> Tensor:
        """log p_CTC (B, V) of what may come next."""
        came = torch.logaddexp(state.voiced, state.silent)  # (B, S + 1)
        top = came[:, :-1].amax(1, keepdim=True)
        before = (came[:, :-1] - top).exp()  # (B, S)
        found = (before[:, None] @ state.heard)[:, 0]  # (B, V)
        again = (state.silent[:, :-1] - top).exp() * _at(state.heard, state.last)  # the same needs a pause
        found = _log(found.scatter(1, state.last[:, None], again.sum(1, keepdim=True))) + top
        found[:, self.specials.end] = came[:, -1]
        found[:, self.specials.pad] = NEVER
        return found - state.total[:, None]

    def _grown(self, ids: Tensor, state: Prefix[S]) -> Prefix[S]:
        """The state one token (B,) later."""
        said = _log(_at(state.heard, ids))  # (B, S)
        pause = _log(state.heard[:, :, self.specials.pad])
        came = torch.logaddexp(state.voiced, state.silent)
        came = torch.where((ids == state.last)[:, None], state.silent, came)
        voiced = _run(came, said)
        total = (came[:, :-1] + said).logsumexp(1)
        return replace(state, voiced=voiced, silent=_run(voiced, pause), total=total, last=ids)


def _at(heard: Tensor, ids: Tensor) -> Tensor:
    """Of heard (B, S, V) the columns of ids (B,): (B, S)."""
    return heard.gather(2, ids[:, None, None].expand(-1, heard.shape[1], 1))[:, :, 0]


def _log(probability: Tensor) -> Tensor:
    return probability.clamp(min=TINY).log()


def _run(came: Tensor, logp: Tensor) -> Tensor:
    """r (B, S + 1) with r_0 = 0 and r_t = (r_{t-1} + came_{t-1}) p_t, all of them as logs; logp (B, S).

    r_t / (p_1 ... p_t) is a running sum, so that no loop over the places is needed.
    """
    along = F.pad(logp.cumsum(1), (1, 0))
    sums = (came[:, :-1] - along[:, :-1]).logcumsumexp(1)
    return F.pad(along[:, 1:] + sums, (1, 0), value=NEVER).clamp(min=NEVER)


def listening(
    model: Any, memory: Tensor, real: Tensor | None, share: float, specials: Specials
) -> tuple[Any, Any]:
    """What to step, and its state, for memory (B, S, D) of a recogniser: joint where it has CTC."""
    inner = model.begin(memory, real)
    spoken = model.spoken(memory) if share else None
    if spoken is None:
        return model, inner
    joint: Joint[Any] = Joint(model, share, specials)
    return joint, joint.begin(inner, spoken, real)
