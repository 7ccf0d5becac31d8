"""The attention of one decoding as it really ran: cached, searched with a beam, and won by one row.

`Watched` stands between a search and its model and follows the same protocol, so that no search knows of it:
each step it notes what was taped, and from which row of the step before each row came. The winner's rows are
then found from front to back and followed from back to front. Before this file: `regard.decoding`; after it:
`look.py`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from regard.attention.record import Tape, Vectors, record
from regard.attention.site import Site
from regard.data.inputs import Tokens
from regard.look.outlook import Top, top

Keep = Callable[[str], bool]  # which attentions to keep, by name
Best = list[tuple[int, float]]  # the likeliest ids with their probabilities
RUNNERS = 5  # pieces that are told beside the one that was taken


@dataclass(frozen=True)
class Heard:
    """One attention of one call: all its rows."""

    site: Site
    weights: Tensor  # (R, H, T, S)
    vectors: Vectors | None


@dataclass(frozen=True)
class Step:
    """One call of `model.step`."""

    ids: Tensor  # (R,) that were read
    parent: Tensor  # (R,) row of the step before
    logp: Tensor  # (R,) of the ids, as the step before gave it
    end: Tensor  # (R,) log p of the end token, as this step gave it
    heard: dict[str, Heard]
    top: Top  # the likeliest of what comes next


@dataclass(frozen=True)
class WatchedState:
    """A model's state and where its rows come from."""

    inner: Any
    parent: Tensor  # (R,) row of the last step
    logp: Tensor | None = None  # (R, V) of the last step, its rows chosen as those of `inner`

    def select(self, rows: Tensor) -> "WatchedState":
        """The given rows, in that order."""
        logp = None if self.logp is None else self.logp.index_select(0, rows)
        return WatchedState(self.inner.select(rows), self.parent.index_select(0, rows), logp)


class Watched(nn.Module):
    """A model under watch; it answers as the model does."""

    def __init__(self, model: Any, *, end: int, vectors: bool = False, keep: Keep | None = None) -> None:
        super().__init__()
        # A new module trains; the search would put the model into that state when it is done.
        self.training = getattr(model, "training", False)
        self.model, self.end, self.vectors = model, end, vectors
        self.keep: Keep = keep or (lambda name: True)
        self.src = torch.empty(0, 0, dtype=torch.long)  # (B, S)
        self.started: dict[str, list[Heard]] = {}
        self.steps: list[Step] = []
        self.logp = torch.empty(0, 0)  # (R, V) of the last step

    @property
    def max_length(self) -> int | None:
        """The model's."""
        length: int | None = self.model.max_length
        return length

    def start(self, inputs: Tokens) -> WatchedState:
        """Read the sources; what was noted of earlier ones is forgotten."""
        with record(vectors=self.vectors) as tape:
            inner = self.model.start(inputs)
        self.src, self.steps = inputs.ids, []
        self.started = heard(tape, self.keep)
        return WatchedState(inner, torch.arange(len(inputs), device=inputs.device))

    def step(self, ids: Tensor, state: WatchedState) -> tuple[Tensor, WatchedState]:
        """One step of the model, noted."""
        with record(vectors=self.vectors) as tape:
            logits, inner = self.model.step(ids, state.inner)
        before = torch.zeros(len(ids)) if state.logp is None else state.logp.gather(1, ids[:, None])[:, 0]
        self.logp = logits.log_softmax(-1)
        new = {name: self._newest(calls[-1]) for name, calls in heard(tape, self.keep).items()}
        self.steps.append(Step(ids, state.parent, before, self.logp[:, self.end], new, top(self.logp)))
        return logits, WatchedState(inner, torch.arange(len(ids), device=ids.device), self.logp)

    def _newest(self, call: Heard) -> Heard:
        """Without keys and values that were noted already: the source's once, else those of steps before."""
        if call.vectors is None:
            return call
        new = slice(0) if self.steps else slice(None)
        if call.site.causal:
            new = slice(-1, None)
        k, v = call.vectors.k[:, :, new].clone(), call.vectors.v[:, :, new].clone()
        return Heard(call.site, call.weights, replace(call.vectors, k=k, v=v))


def heard(tape: Tape, keep: Keep | None = None) -> dict[str, list[Heard]]:
    """The calls of a tape, by the name of the attention; all of them, or those to keep."""
    return {
        site.name: [
            # All weights (R, H, T, S); the length of what is looked at was bounded before.
            Heard(site, weights.to_dense(), vectors)
            for weights, vectors in zip(tape[site.name], tape.vectors(site.name), strict=True)
        ]
        for site in tape.sites()
        if keep is None or keep(site.name)
    }


@dataclass(frozen=True)
class Trace:
    """What was taped of one output, from its first token to its last."""

    source: list[int]  # ids, the end with them
    written: list[int]  # ids, the end with them if it came
    logp: list[float]  # of each id that was written
    encoder: dict[str, list[Heard]]  # calls of the row (1, H, T, S)
    decoder: dict[str, list[Heard]]  # a call a step, of the winner's row (1, H, 1, S)
    best: tuple[Best, ...] = ()  # for each id that was written, the likeliest
    tops: tuple[Top, ...] = ()  # and more of them, one row each

    @property
    def confidence(self) -> tuple[float, ...]:
        """The probability of each id that was written."""
        return tuple(math.exp(each) for each in self.logp)


def follow(watched: Watched, written: Sequence[int], *, begin: int, sentence: int = 0) -> Trace:
    """The trace of the output `written`, its end with it if it came, of one sentence of the batch."""
    rows = _rows(watched.steps[: len(written)], [begin, *written[:-1]], sentence)
    steps = list(zip(watched.steps, rows, strict=False))
    logp = [float(step.logp[row]) for step, row in steps[1:]]
    last, row = steps[-1]
    final = last.end[row] if written[-1] == watched.end else watched.logp[row, written[-1]]
    names = dict.fromkeys(name for step, _ in steps for name in step.heard)
    source = watched.src[sentence]
    return Trace(
        source=source[: int((source == watched.end).nonzero()[0]) + 1].tolist(),
        written=list(written),
        logp=[*logp, float(final)],
        encoder={name: [_row(call, sentence) for call in calls] for name, calls in watched.started.items()},
        decoder={name: [_row(step.heard[name], row) for step, row in steps] for name in names},
        best=tuple(_likeliest(step.top, row) for step, row in steps),
        tops=tuple(Top(*(part[row : row + 1] for part in step.top)) for step, row in steps),
    )


def _rows(steps: Sequence[Step], read: Sequence[int], sentence: int) -> list[int]:
    """The row of each step that read these ids. Of rows with the same past any will do: they are equal."""
    same: list[Tensor] = []
    for step, number in zip(steps, read, strict=True):
        past = same[-1][step.parent] if same else step.parent == sentence
        same.append(past & (step.ids == number))
    row = int(same[-1].nonzero()[0])
    rows = [row]
    for step in reversed(steps[1:]):
        row = int(step.parent[row])
        rows.append(row)
    return rows[::-1]


def _likeliest(found: Top, row: int) -> Best:
    logp, ids = (part[row, : RUNNERS + 1].tolist() for part in (found.logp, found.ids))
    return [(number, math.exp(each)) for number, each in zip(ids, logp, strict=True)]


def _row(heard: Heard, row: int) -> Heard:
    vectors = None if heard.vectors is None else heard.vectors.row(row)
    return Heard(heard.site, heard.weights[row : row + 1].cpu(), vectors)
