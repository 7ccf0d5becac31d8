"""Beam search: the best few beginnings of each sentence side by side, instead of the best one.

    score = log p / length ** penalty, the end counted

Each sentence has `beam` places. At every step its beginnings are continued in the 2 · beam likeliest ways.
Those of the first `beam` that end become outputs; the likeliest others, ended ones left out, fill the places
again. A sentence is done with `beam` outputs, or at its longest length. Without a length penalty nothing can
beat a beginning that was the likeliest when it ended, so that `n_best` outputs are enough from then on. This
is the search of CTranslate2, so that an exported model says what ours says; one place is greedy search.

One step: `_candidates` -> `_put_aside` -> the rows that go on. Rows are beginnings, not places: what is
done costs nothing more. Who wants to see the whole search runs it inside `witnessed()`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch import Tensor

from regard.data.inputs import Inputs
from regard.decoding.search import Hypothesis, Rules, log_probabilities
from regard.errors import UsageError
from regard.models.protocol import Stepper, StepState

S = TypeVar("S", bound=StepState)
In = TypeVar("In", bound=Inputs)


@dataclass(frozen=True)
class Beginnings:
    """What is being written: R rows, grouped by sentence, the best of a sentence first."""

    sentence: Tensor  # (R,) place in the batch, ascending
    parent: Tensor  # (R,) row of the step before that it goes on from
    ids: Tensor  # (R, T) begin, then what was written
    total: Tensor  # (R,) log p

    def select(self, where: Tensor) -> "Beginnings":
        """The rows where (R,) is True."""
        rows = where.nonzero()[:, 0]
        return Beginnings(self.sentence[rows], self.parent[rows], self.ids[rows], self.total[rows])

    def place(self) -> Tensor:
        """(R,) how many rows of its own sentence come before each."""
        first = torch.searchsorted(self.sentence, self.sentence)
        return torch.arange(len(first), device=first.device) - first


@dataclass(frozen=True)
class Round:
    """One step of a search as it was: what was considered, and what became of it."""

    candidates: Beginnings  # (C,) rows; `parent` are rows of those that stayed in the round before
    output: Tensor  # (C,) True: put aside as an output
    stays: Tensor  # (C,) True: goes on; what is neither was dropped


_rounds: ContextVar[list[Round] | None] = ContextVar("rounds", default=None)


@contextmanager
def witnessed() -> Iterator[list[Round]]:
    """The rounds of every beam search inside the block, as they come."""
    rounds: list[Round] = []
    token = _rounds.set(rounds)
    try:
        yield rounds
    finally:
        _rounds.reset(token)


class Found:
    """The outputs of each sentence so far, and which sentences are done."""

    def __init__(self, rules: Rules, beam: int, n_best: int) -> None:
        self.rules, self.beam, self.n_best = rules, beam, n_best
        self.outputs: list[list[Hypothesis]] = [[] for _ in rules.most]
        self.count = torch.zeros_like(rules.most)  # (B,)
        self.likeliest = torch.zeros_like(rules.most, dtype=torch.bool)  # (B,) the first place has ended once

    def add(self, rows: Beginnings, place: Tensor) -> None:
        """Put outputs aside: rows that end or were cut, with their places (R,) in their sentences."""
        self.count += torch.bincount(rows.sentence, minlength=len(self.count))
        self.likeliest[rows.sentence[place == 0]] = True
        written = zip(rows.sentence.tolist(), rows.ids[:, 1:].tolist(), rows.total.tolist(), strict=True)
        for sentence, ids, total in written:
            self.outputs[sentence].append(self.rules.hypothesis(ids, total))

    def done(self) -> Tensor:
        """Sentences (B,) that need no further search, unless their longest length stops them first."""
        if self.rules.penalty == 0:
            return self.likeliest & (self.count >= self.n_best)
        return self.count >= self.beam

    def best(self) -> list[list[Hypothesis]]:
        """The `n_best` of each sentence, best first."""
        return [sorted(outputs, key=lambda each: -each.score)[: self.n_best] for outputs in self.outputs]


def beam_search(
    model: Stepper[In, S], inputs: In, rules: Rules, *, beam: int, n_best: int = 1
) -> list[list[Hypothesis]]:
    """The `n_best` outputs found for each row of the inputs, best first."""
    if not 1 <= n_best <= beam:
        raise UsageError(f"n_best ({n_best}) must be at least 1 and at most beam ({beam})")
    state = model.start(inputs)
    found = Found(rules, beam, n_best)
    every = torch.arange(len(inputs), device=inputs.device)
    begin = rules.beginning()[:, None]  # (B, 1)
    live = Beginnings(every, every, begin, torch.zeros(len(inputs), device=inputs.device))
    for step in range(int(rules.most.max())):
        logits, state = model.step(live.ids[:, -1], state)
        logp = log_probabilities(logits, rules, step, live.sentence)
        rows = len(live.total)
        live = _put_aside(_candidates(live, logp, 2 * beam), found)
        if len(live.total) == 0:
            break
        if not torch.equal(live.parent, torch.arange(rows, device=inputs.device)):
            state = state.select(live.parent)
    return found.best()


def _candidates(live: Beginnings, logp: Tensor, most: int) -> Beginnings:
    """The likeliest continuations of each sentence, at most so many; logp (R, V)."""
    values, tokens = logp.topk(min(most, logp.shape[1]))  # (R, k): no sentence takes more from one row
    k, place = values.shape[1], live.place()
    grid = values.new_full((int(live.sentence[-1]) + 1, int(place.max()) + 1, k), float("-inf"))
    grid[live.sentence, place] = live.total[:, None] + values  # (B, rows of a sentence, k)
    best, where = grid.flatten(1).sort(descending=True, stable=True)  # the first of equals
    sentence, rank = (best[:, :most] > float("-inf")).nonzero(as_tuple=True)  # (C,)
    where = where[sentence, rank]
    parent = torch.searchsorted(live.sentence, sentence) + where // k
    ids = torch.cat([live.ids[parent], tokens[parent, where % k][:, None]], 1)
    return Beginnings(sentence, parent, ids, best[sentence, rank])


def _put_aside(candidates: Beginnings, found: Found) -> Beginnings:
    """The rows that go on; outputs are taken from the first `beam` candidates of each sentence."""
    ended = candidates.ids[:, -1] == found.rules.specials.end
    cut = (found.rules.most <= candidates.ids.shape[1] - 1)[candidates.sentence]
    place = candidates.place()
    output = (ended | cut) & (place < found.beam)
    if output.any():
        found.add(candidates.select(output), place[output])
    stays = ~(ended | cut | found.done()[candidates.sentence])
    stays[stays.nonzero()[candidates.select(stays).place() >= found.beam, 0]] = False
    if (rounds := _rounds.get()) is not None:
        rounds.append(Round(candidates, output, stays))
    return candidates.select(stays)
