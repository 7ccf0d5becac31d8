"""Beam search: the best few beginnings of each sentence side by side, instead of the best one.

    score = log p / length ** penalty

Each sentence has `beam` places. At every step the likeliest continuations of its beginnings fill them; one
that ends is put aside and keeps its place, so the search narrows as outputs are found (first come, first
served: Kasai et al. 2022, section 2) and with a beam of one it is greedy search. A sentence is done
when all its places hold outputs, or when no beginning can beat the worst of the n best found: log p only
falls and an output has at most `most` tokens, so log p / most ** penalty is the highest score within reach.

One step: `_candidates` -> `_put_aside` -> `_hopeless` -> the rows that go on. Rows are beginnings, not
places: what is done costs nothing more.
"""

from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from regard.decoding.search import Hypothesis, Rules, log_probabilities
from regard.errors import UsageError
from regard.models.protocol import Seq2Seq, State
from regard.text.tokenizer import BEGIN, END

S = TypeVar("S", bound=State)


@dataclass(frozen=True)
class Beginnings:
    """What is being written: R rows, grouped by sentence, the best of a sentence first."""

    sentence: Tensor  # (R,) place in the batch, ascending
    parent: Tensor  # (R,) row of the step before that it goes on from
    ids: Tensor  # (R, T) begin, then what was written
    total: Tensor  # (R,) log p

    def select(self, rows: Tensor) -> "Beginnings":
        """The given rows, in that order."""
        return Beginnings(self.sentence[rows], self.parent[rows], self.ids[rows], self.total[rows])


class Found:
    """The outputs of each sentence so far, and what they mean for the search."""

    def __init__(self, rules: Rules, beam: int, n_best: int) -> None:
        self.rules, self.n_best = rules, n_best
        self.outputs: list[list[Hypothesis]] = [[] for _ in rules.most]
        self.places = torch.full_like(rules.most, beam)  # (B,) still free
        self.worst = torch.full_like(rules.most, float("-inf"), dtype=torch.float32)  # (B,) of the n best

    def add(self, rows: Beginnings) -> None:
        """Put outputs aside: rows that end, or that were cut."""
        self.places -= torch.bincount(rows.sentence, minlength=len(self.places))
        for sentence, ids, total in zip(
            rows.sentence.tolist(), rows.ids[:, 1:].tolist(), rows.total.tolist(), strict=True
        ):
            cut = ids[-1] != END
            output = Hypothesis(ids if cut else ids[:-1], self.rules.score(total, len(ids)), cut)
            self.outputs[sentence].append(output)
            self.outputs[sentence].sort(key=lambda each: each.rank)
            if len(self.outputs[sentence]) >= self.n_best:
                self.worst[sentence] = self.outputs[sentence][self.n_best - 1].score


def beam_search(
    model: Seq2Seq[S], src: Tensor, src_mask: Tensor, rules: Rules, *, beam: int, n_best: int = 1
) -> list[list[Hypothesis]]:
    """The `n_best` outputs found for each source of (B, S), best first: whole ones, then cut ones."""
    if not 1 <= n_best <= beam:
        raise UsageError(f"n_best ({n_best}) must be at least 1 and at most beam ({beam})")
    state = model.start(src, src_mask)
    found = Found(rules, beam, n_best)
    every = torch.arange(len(src), device=src.device)
    begin = torch.full_like(every, BEGIN)[:, None]  # (B, 1)
    live = Beginnings(every, every, begin, torch.zeros(len(src), device=src.device))
    for step in range(int(rules.most.max())):
        logits, state = model.step(live.ids[:, -1], state)
        logp = log_probabilities(logits, rules, step, live.sentence)
        rows = len(live.total)
        live = _put_aside(_candidates(live, logp, found.places, beam), found)
        live = live.select((~_hopeless(live, found))[live.sentence].nonzero()[:, 0])
        if len(live.total) == 0:
            break
        if not torch.equal(live.parent, torch.arange(rows, device=src.device)):
            state = state.select(live.parent)
    return [outputs[:n_best] for outputs in found.outputs]


def _candidates(live: Beginnings, logp: Tensor, places: Tensor, beam: int) -> Beginnings:
    """The likeliest continuations of each sentence, as many as it has places free (B,); logp (R, V)."""
    values, tokens = logp.topk(min(beam, logp.shape[1]))  # (R, k): no sentence takes more from one row
    first = torch.searchsorted(live.sentence, torch.arange(len(places), device=places.device))  # (B,)
    number = torch.arange(len(values), device=places.device) - first[live.sentence]  # (R,) in its sentence
    k = values.shape[1]
    grid = values.new_full((len(places), int(number.max()) + 1, k), float("-inf"))
    grid[live.sentence, number] = live.total[:, None] + values  # (B, rows of a sentence, k)
    best, where = grid.flatten(1).sort(descending=True, stable=True)  # the first of equals
    rank = torch.arange(best.shape[1], device=places.device)
    sentence, taken = ((rank < places[:, None]) & (best > float("-inf"))).nonzero(as_tuple=True)  # (C,)
    place = where[sentence, taken]
    parent = first[sentence] + place // k
    ids = torch.cat([live.ids[parent], tokens[parent, place % k][:, None]], 1)
    return Beginnings(sentence, parent, ids, best[sentence, taken])


def _put_aside(live: Beginnings, found: Found) -> Beginnings:
    """The rows that go on; those that have ended, or are as long as they may be, become outputs."""
    ended = live.ids[:, -1] == END
    done = ended | (found.rules.most[live.sentence] <= live.ids.shape[1] - 1)
    if not done.any():
        return live
    found.add(live.select(done.nonzero()[:, 0]))
    return live.select((~done).nonzero()[:, 0])


def _hopeless(live: Beginnings, found: Found) -> Tensor:
    """Sentences (B,) of which no row can reach a score above the worst of the n best."""
    best = torch.full_like(found.worst, float("-inf")).scatter_reduce(0, live.sentence, live.total, "amax")
    return best / found.rules.most**found.rules.penalty <= found.worst
