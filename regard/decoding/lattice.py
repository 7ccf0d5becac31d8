"""Paths through places that each say a token or nothing (CTC), found exactly by dynamic programming.

    collapse   a path (T,) to what it says: repeats joined, then blanks dropped
    align      the likeliest path that says a given target (Viterbi)
    bounded    the likeliest path whose tokens cost exactly, or at most, so much

A cost is 1 a token for a length, or its characters for a line of a subtitle. Without a blank every place
says a token of its own, which is how `maskpredict.py` uses `bounded`. Used by `ctc.py` and by training.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from regard.errors import DataError

NOTHING = float("-inf")
LARGEST = 2**31  # cells of a table


def collapse(path: Sequence[int], blank: int) -> list[int]:
    """What a path says.

    >>> collapse([0, 5, 5, 0, 5, 7], blank=0)
    [5, 5, 7]
    """
    before = [blank, *path[:-1]]
    return [label for label, last in zip(path, before, strict=True) if label not in (blank, last)]


# A given target --------------------------------------------------------------------------------


def extended(targets: Tensor, blank: int) -> Tensor:
    """Targets (B, L) with a blank before, between and after their tokens: (B, 2 L + 1)."""
    rows = torch.full((targets.shape[0], 2 * targets.shape[1] + 1), blank, device=targets.device)
    rows[:, 1::2] = targets
    return rows


def align(said: Tensor, labels: Tensor, places: Tensor, lengths: Tensor) -> Tensor:
    """The likeliest path of each target: which of its labels (B, U) every place says, (B, T).

    `said` (B, T, U) is how likely each place says each label, `labels` those of `extended`; outputs have so
    many `places` (B,), targets so many tokens, `lengths` (B,).
    """
    skips = torch.zeros_like(labels, dtype=torch.bool)
    skips[:, 2:] = labels[:, 2:] != labels[:, :-2]  # over a blank, between two tokens that differ
    best = torch.full_like(said[:, 0], NOTHING)
    best[:, :2] = said[:, 0, :2]
    moves: list[Tensor] = []
    for t in range(1, said.shape[1]):
        step = best.roll(1, 1).index_fill(1, _first(1, best), NOTHING)
        jump = best.roll(2, 1).index_fill(1, _first(2, best), NOTHING).masked_fill(~skips, NOTHING)
        found, move = torch.stack([best, step, jump]).max(0)
        live = (places > t)[:, None]
        best = torch.where(live, found + said[:, t], best)
        moves.append(torch.where(live, move, 0))
    last = 2 * lengths[:, None]  # (B, 1): it ends in the blank after the last token, or in that token
    before = (last - 1).clamp(min=0)
    state = torch.where(best.gather(1, before) > best.gather(1, last), before, last)
    states = [state]
    for move in reversed(moves):
        state = state - move.gather(1, state)
        states.append(state)
    return torch.cat(states[::-1], 1)


def _first(count: int, like: Tensor) -> Tensor:
    return torch.arange(min(count, like.shape[1]), device=like.device)


# A given length --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Costs:
    """What each token costs (V,), the first one `less` (V,) of it; the path `most`, exactly or at most."""

    each: Tensor
    most: int
    exact: bool = False
    less: Tensor | None = None

    @property
    def first(self) -> Tensor:
        """What a token costs that comes first."""
        return self.each if self.less is None else self.each - self.less


def bounded(logp: Tensor, costs: Costs, *, blank: int | None) -> tuple[list[int], float] | None:
    """The likeliest path (T,) within its costs, and its log p; None where there is none.

    logp (T, V) is -inf for what is never said. A state is what was spent and the label of the last place:
    it is stayed in, or entered from the best one that has another label.
    """
    cells = logp.shape[0] * (costs.most + 1) * logp.shape[1]
    if cells > LARGEST:
        raise DataError(
            f"{logp.shape[0]} places, a bound of {costs.most} and {logp.shape[1]:,} tokens make a table of "
            f"{cells:,} cells, and at most {LARGEST:,} are searched; split the line or lower the bound"
        )
    table = _Table(logp, costs, blank)
    for t in range(1, logp.shape[0]):
        table.advance(t)
    return table.path()


class _Table:
    """The best path to every state of the last place, and how every state was reached."""

    def __init__(self, logp: Tensor, costs: Costs, blank: int | None) -> None:
        self.logp, self.costs, self.blank = logp, costs, blank
        spent = torch.arange(costs.most + 1, device=logp.device)[:, None]  # (C, 1)
        self.before = spent - costs.each  # (C, V): what was spent before a token was entered
        self.began = spent == costs.first  # (C, V): where a first token leads to
        self.tokens = logp.clone()  # (T, V), without the blank
        if blank is not None:
            self.tokens[:, blank] = NOTHING
        self.silence = 0.0  # log p of having said nothing so far
        self.best = torch.where(self.began, self.tokens[0], NOTHING)  # (C, V)
        self.entered: list[Tensor] = []  # (C, V) a place: 0 stayed, 1 entered, 2 the first token
        self.peaks: list[tuple[Tensor, Tensor]] = []  # (C,) a place: the best two labels before it
        self._say_nothing(0)

    def _say_nothing(self, t: int) -> None:
        self.silence = NOTHING if self.blank is None else self.silence + float(self.logp[t, self.blank])

    def advance(self, t: int) -> None:
        """One place more."""
        peak, label = self.best.topk(min(2, self.best.shape[1]), 1)  # (C, 2)
        second = peak[:, -1] if peak.shape[1] > 1 else torch.full_like(peak[:, 0], NOTHING)
        here = self.before.clamp(min=0)
        enter = peak[:, 0][here]
        if self.blank is not None:  # the same token again would be the same one, said longer
            columns = torch.arange(here.shape[1], device=here.device)
            enter = torch.where(label[:, 0][here] == columns, second[here], enter)
        enter = enter.masked_fill(self.before < 0, NOTHING)
        stay = self.best if self.blank is not None else torch.full_like(self.best, NOTHING)
        begin = torch.where(self.began, self.silence, NOTHING)
        found, how = torch.stack([stay, enter, begin]).max(0)
        self.best = found + self.tokens[t]
        how = how.to(torch.int8)
        if self.blank is not None:
            self.best[:, self.blank] = peak[:, 0] + self.logp[t, self.blank]
            how[:, self.blank] = 1
        self.entered.append(how)
        self.peaks.append((label[:, 0], label[:, -1]))
        self._say_nothing(t)

    def path(self) -> tuple[list[int], float] | None:
        """From back to front."""
        ends = self.best[-1:] if self.costs.exact else self.best
        total, where = ends.flatten().max(0)
        quiet = NOTHING if self.costs.exact and self.costs.most else self.silence
        if max(float(total), quiet) == NOTHING:
            return None
        if quiet >= float(total) and self.blank is not None:
            return [self.blank] * len(self.logp), quiet
        spent = int(where) // ends.shape[1] + (self.costs.most if self.costs.exact else 0)
        label = int(where) % ends.shape[1]
        path = [label]
        for how, peaks in zip(reversed(self.entered), reversed(self.peaks), strict=True):
            kind = int(how[spent, label])
            if kind == 2:
                assert self.blank is not None
                path += [self.blank] * (len(self.logp) - len(path))
                break
            if kind == 1:
                last = label
                if label != self.blank:
                    spent = int(self.before[spent, label])
                label = int(peaks[0][spent])
                if label == last and self.blank is not None and last != self.blank:
                    label = int(peaks[1][spent])
            path.append(label)
        return path[::-1], float(total)


__all__ = ["Costs", "align", "bounded", "collapse", "extended"]
