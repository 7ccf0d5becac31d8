"""Writing with CTC: every place says a token or nothing; repeats and blanks fall out (Graves et al. 2006).

    greedy    the likeliest path: the likeliest label at every place
    beam      the likeliest outputs: the paths that say the same are added up (prefix beam search)
    bounded   the likeliest path with so many tokens, or with no more characters: see `lattice.py`

An output scores its log p as it is: all have the same places, so that a longer one has no more to lose. The
blank is `specials.blank`. Before this file: `lattice.py`; the model is `regard.models.ctc`.
"""

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from regard.decoding.lattice import Costs, bounded, collapse
from regard.decoding.search import Hypothesis, Rules
from regard.decoding.way import Wanted, check_beam, refuse_draws
from regard.errors import DataError, UsageError

Total = tuple[float, float]  # log p of the paths of a beginning that end in a blank, and of the others
NEVER = float("-inf")


class Aligned:
    """One path, or the outputs of many."""

    refines = False

    def check(self, wanted: Wanted) -> None:
        """It searches, and a bound has one answer."""
        refuse_draws(wanted)
        check_beam(wanted)
        if wanted.bounded and wanted.n_best > 1:
            raise UsageError(f"n_best ({wanted.n_best}) must be 1 where a length is asked for")

    def search(self, model: Any, inputs: Any, rules: Rules, wanted: Wanted) -> list[list[Hypothesis]]:
        """Up to `n_best` outputs for each row of the inputs, best first."""
        wanted.check_time()
        blank = rules.specials.blank
        state = model.start(inputs)
        ids, real = model.places(state, rules.specials.mask)
        banned = never_said(rules, model.output_weight.shape[0], ids.device, spare=blank)
        if wanted.decode.beam == 1 and not wanted.bounded:
            chosen, logp = model.guess(ids, real, state, banned)
            rows = zip(chosen.tolist(), logp.tolist(), real.sum(1).tolist(), strict=True)
            return [[spoken(path[:n], sum(found[:n]), blank)] for path, found, n in rows]
        every = model.logits(ids, real, state).log_softmax(-1).masked_fill(banned, NEVER)
        places = real.sum(1).tolist()
        return [self._one(each[:n], rules, wanted) for each, n in zip(every, places, strict=True)]

    def _one(self, logp: Tensor, rules: Rules, wanted: Wanted) -> list[Hypothesis]:
        """The outputs of one row, logp (T, V)."""
        wanted.check_time()
        if wanted.bounded:
            return [within(logp, rules, wanted)]
        found = prefix_beam(logp, wanted.decode.beam, blank=rules.specials.blank)
        return [Hypothesis(ids, total, False) for ids, total in found[: wanted.outputs]]


def never_said(rules: Rules, width: int, device: torch.device, *, spare: int | None = None) -> Tensor:
    """What no place says (V,): specials and the end, and what fills up the vocabulary."""
    banned = torch.zeros(width, dtype=torch.bool, device=device)
    banned[[*rules.specials.never, rules.specials.end]] = True
    if rules.vocab_size is not None:
        banned[rules.vocab_size :] = True
    if spare is not None:
        banned[spare] = False
    return banned


def within(logp: Tensor, rules: Rules, wanted: Wanted) -> Hypothesis:
    """The output of the likeliest path with the length that was asked for, logp (T, V)."""
    blank, found = rules.specials.blank, None
    if wanted.length is not None:
        if wanted.length > len(logp):
            raise DataError(
                f"length ({wanted.length}) is above the {len(logp)} places that a line has to be written in; "
                "take a smaller one, or a model with more (model.upsample)"
            )
        costs = Costs(torch.ones_like(logp[0], dtype=torch.int64), wanted.length, exact=True)
        found = bounded(logp, costs, blank=blank)
        if found is not None and wanted.max_chars is not None and wanted.spelling is not None:
            count = wanted.spelling.count(collapse(found[0], blank))
            if count > wanted.max_chars:
                raise DataError(
                    f"{wanted.length} tokens have {count} characters, and max_chars is {wanted.max_chars}; "
                    "ask for one of the two"
                )
    elif wanted.max_chars is not None and wanted.spelling is not None:
        costs = Costs(wanted.spelling.characters, wanted.max_chars, less=wanted.spelling.leading)
        found = bounded(logp, costs, blank=blank)
    if found is None:
        raise DataError(f"no output of {len(logp)} places keeps the length that was asked for")
    return spoken(*found, blank)


def prefix_beam(logp: Tensor, beam: int, *, blank: int) -> list[tuple[list[int], float]]:
    """The likeliest outputs with their log p, best first: logp (T, V); `beam` beginnings live."""
    few = min(2 * beam + 1, logp.shape[1])
    values, labels = (part.tolist() for part in logp.topk(few, 1))
    quiet = logp[:, blank].tolist()
    live: dict[tuple[int, ...], Total] = {(): (0.0, NEVER)}
    for here, names, nothing in zip(values, labels, quiet, strict=True):
        grown: dict[tuple[int, ...], list[float]] = {}
        for ids, (silent, speaking) in live.items():
            both = _add(silent, speaking)
            _put(grown, ids, 0, both + nothing)
            for value, label in zip(here, names, strict=True):
                if label == blank:
                    continue
                again = bool(ids) and ids[-1] == label
                if again:
                    _put(grown, ids, 1, speaking + value)
                _put(grown, (*ids, label), 1, (silent if again else both) + value)
        ranked = sorted(grown.items(), key=lambda each: -_add(each[1][0], each[1][1]))
        live = {ids: (two[0], two[1]) for ids, two in ranked[:beam]}
    found = [(list(ids), _add(*two)) for ids, two in live.items()]
    return sorted(found, key=lambda each: -each[1])


def _put(grown: dict[tuple[int, ...], list[float]], ids: tuple[int, ...], place: int, logp: float) -> None:
    two = grown.setdefault(ids, [NEVER, NEVER])
    two[place] = _add(two[place], logp)


def _add(one: float, other: float) -> float:
    """log(e^one + e^other)."""
    if one < other:
        one, other = other, one
    return one if other == NEVER else one + math.log1p(math.exp(other - one))


def spoken(path: Sequence[int], total: float, blank: int) -> Hypothesis:
    """The output that a path with so much log p says."""
    return Hypothesis(collapse(path, blank), float(total), False)


WAY = Aligned()

__all__ = ["WAY", "Aligned", "never_said", "prefix_beam", "spoken", "within"]
