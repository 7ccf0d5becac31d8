"""Mask-predict: all places are written at once, then the least sure are hidden and written again.

    n_i = ⌊T (I - i) / I⌋ places are hidden before pass i of I    (Ghazvininejad et al. 2019)

The length T is foreseen from the source, and the likeliest few are tried side by side; or there are more
places than needed, and the output is cut where the end comes (`decode.length=end`). An output scores the mean
log p of its tokens. The model is `regard.models.parallel`.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from regard.decoding.ctc import never_said
from regard.decoding.lattice import Costs, bounded
from regard.decoding.search import Hypothesis, Rules
from regard.decoding.way import Wanted, refuse_draws
from regard.errors import DataError, UsageError

SPARE_RATIO, SPARE_EXTRA = 1.5, 8  # places that are cut at the end: extra + ratio * source length
NEVER = float("-inf")


@dataclass(frozen=True)
class Canvas:
    """Outputs that are being written: R rows, several of one sentence."""

    sentence: Tensor  # (R,) place in the batch
    lengths: Tensor  # (R,) places of each
    unknown: int  # the id of a place that is not written yet
    ids: Tensor  # (R, T)
    logp: Tensor  # (R, T)

    @property
    def real(self) -> Tensor:
        """Where there are places (R, T)."""
        return torch.arange(self.ids.shape[1], device=self.ids.device) < self.lengths[:, None]


class MaskPredict:
    """All places at once, some of them again."""

    refines = True

    def check(self, wanted: Wanted) -> None:
        """As many outputs as lengths."""
        refuse_draws(wanted)
        if wanted.n_best > 1 and (wanted.length is not None or wanted.decode.length == "end"):
            raise UsageError(
                f"n_best ({wanted.n_best}) needs as many lengths; there is one where it is given or cut"
            )

    def search(self, model: Any, inputs: Any, rules: Rules, wanted: Wanted) -> list[list[Hypothesis]]:
        """Up to `n_best` outputs for each row of the inputs, best first, each of another length."""
        state = model.start(inputs)
        sentence, lengths = self._lengths(model, state, rules, wanted)
        found = self._outputs(model, state, sentence, lengths, rules, wanted)
        spelling, most = wanted.spelling, wanted.max_chars
        if spelling is not None and most is not None:
            for row, outputs in enumerate(found):
                short = [each for each in outputs if spelling.count(each.ids) <= most]
                found[row] = short or [self._shortened(model, state, row, outputs[0], rules, wanted)]
        return found if wanted.every else [outputs[: wanted.n_best] for outputs in found]

    def _lengths(self, model: Any, state: Any, rules: Rules, wanted: Wanted) -> tuple[Tensor, Tensor]:
        """Which lengths are tried for which sentence: (R,) both."""
        words = state.lengths - 1  # (B,)
        every = torch.arange(len(words), device=words.device)
        if wanted.length is not None:
            if wanted.length > int(rules.most.min()):
                raise DataError(
                    f"length ({wanted.length}) is above the longest output of a line of {int(words.min())} "
                    f"tokens, {int(rules.most.min())} (decode.max_ratio, decode.max_extra)"
                )
            return every, torch.full_like(words, wanted.length)
        if wanted.decode.length == "end":
            spare = (words * SPARE_RATIO).long() + SPARE_EXTRA
            return every, torch.minimum(spare, rules.most)
        logp = model.lengths(state).log_softmax(-1)  # (B, 2 R + 1)
        reach = logp.shape[1] // 2
        lengths = words[:, None] + torch.arange(-reach, reach + 1, device=words.device)
        most = (rules.most - 1).clamp(min=1)[:, None]
        if wanted.max_chars is not None:
            most = most.clamp(max=wanted.max_chars)
        allowed = (lengths >= rules.least.clamp(min=1)[:, None]) & (lengths <= most)
        logp = logp.masked_fill(~allowed, NEVER)
        count = min(max(wanted.decode.lengths, wanted.n_best), logp.shape[1])
        best, where = logp.topk(count, 1)
        taken = lengths.gather(1, where)
        if bool((best[:, 0] == NEVER).any()):  # no length that it foresees may be: the nearest that may
            taken[best[:, 0] == NEVER, 0] = most.expand_as(taken)[best[:, 0] == NEVER, 0]
        kept = (best > NEVER) | (torch.arange(count, device=best.device) == 0)
        return every[:, None].expand_as(taken)[kept], taken[kept]

    def _outputs(
        self, model: Any, state: Any, sentence: Tensor, lengths: Tensor, rules: Rules, wanted: Wanted
    ) -> list[list[Hypothesis]]:
        """The outputs of every sentence, best first."""
        open_ended = wanted.decode.length == "end" and wanted.length is None
        canvas = refine(model, state, blank_canvas(sentence, lengths, rules, open_ended), rules, wanted)
        found: list[list[Hypothesis]] = [[] for _ in range(int(sentence.max()) + 1)]
        rows = zip(
            sentence.tolist(), lengths.tolist(), canvas.ids.tolist(), canvas.logp.tolist(), strict=True
        )
        for number, length, ids, logp in rows:
            found[number].append(_hypothesis(ids[:length], logp[:length], rules, open_ended=open_ended))
        return [sorted(outputs, key=lambda each: -each.score) for outputs in found]

    def _shortened(
        self, model: Any, state: Any, row: int, long: Hypothesis, rules: Rules, wanted: Wanted
    ) -> Hypothesis:
        """The best output of a row that has few enough characters; `long` has too many.

        Shorter lengths are tried. Where none is enough, the likeliest tokens of all places together that are.
        """
        most, spelling = wanted.max_chars, wanted.spelling
        assert most is not None
        assert spelling is not None
        guess = max(1, len(long.ids) * most // max(1, spelling.count(long.ids)))
        tried = sorted(
            {wanted.length} if wanted.length else {max(1, guess + more) for more in (-2, -1, 0, 1)}
        )
        alone = state.select(torch.tensor([row], device=state.lengths.device))
        sentence = torch.zeros(len(tried), dtype=torch.int64, device=state.lengths.device)
        lengths = torch.tensor(tried, device=sentence.device)
        closed = replace(wanted, decode=replace(wanted.decode, length="predict"))
        (outputs,) = self._outputs(model, alone, sentence, lengths, rules, closed)
        short = [each for each in outputs if spelling.count(each.ids) <= most]
        if short:
            return short[0]
        length = wanted.length or min(guess, most)
        canvas = blank_canvas(sentence[:1], sentence.new_tensor([length]), rules, open_ended=False)
        logits = model.logits(canvas.ids, canvas.real, alone.select(sentence[:1]))[0]
        banned = never_said(rules, logits.shape[1], logits.device)
        logp = logits.log_softmax(-1).masked_fill(banned, NEVER)
        found = bounded(logp, Costs(spelling.characters, most, less=spelling.leading), blank=None)
        if found is None:
            raise DataError(f"no output of {length} tokens has at most {most} characters (max_chars)")
        return Hypothesis(found[0], found[1] / length, False)


def blank_canvas(sentence: Tensor, lengths: Tensor, rules: Rules, open_ended: bool) -> Canvas:
    """Nothing is known yet. A canvas that is to be cut has another sign for it, so that the model knows."""
    unknown = rules.specials.begin if open_ended else rules.specials.mask
    shape = len(lengths), int(lengths.max())
    ids = torch.full(shape, unknown, device=lengths.device)
    return Canvas(sentence, lengths, unknown, ids, torch.full(shape, NEVER, device=lengths.device))


def refine(model: Any, state: Any, canvas: Canvas, rules: Rules, wanted: Wanted) -> Canvas:
    """All passes: at first everything is hidden, then ever less of what is least sure."""
    spare = rules.specials.end if canvas.unknown == rules.specials.begin else None
    banned = never_said(rules, model.output_weight.shape[0], canvas.ids.device, spare=spare)
    same = torch.equal(canvas.sentence, torch.arange(len(state.lengths), device=canvas.ids.device))
    state = state if same else state.select(canvas.sentence)
    passes, hidden = wanted.decode.iterations, canvas.real
    for number in range(passes):
        wanted.check_time()
        if number:
            hidden = least_sure(canvas, canvas.lengths * (passes - number) // passes)
            if not bool(hidden.any()):
                break
        known = canvas.ids.masked_fill(hidden, canvas.unknown)
        ids, logp = model.guess(known, canvas.real, state, banned)
        canvas = replace(
            canvas,
            ids=torch.where(hidden, ids, canvas.ids),
            logp=torch.where(hidden, logp.to(canvas.logp.dtype), canvas.logp),
        )
    return canvas


def least_sure(canvas: Canvas, counts: Tensor) -> Tensor:
    """The so many (R,) places of each row with the lowest log p, of equals the first: (R, T)."""
    order = canvas.logp.masked_fill(~canvas.real, math.inf).argsort(stable=True, dim=1)
    rank = torch.empty_like(order).scatter_(1, order, torch.arange(order.shape[1]).expand_as(order).to(order))
    return (rank < counts[:, None]) & canvas.real


def _hypothesis(ids: list[int], logp: list[float], rules: Rules, *, open_ended: bool) -> Hypothesis:
    ended = not open_ended or rules.specials.end in ids
    if open_ended and ended:
        cut = ids.index(rules.specials.end)
        ids, logp = ids[:cut], logp[: cut + 1]
    return Hypothesis(ids, sum(logp) / max(1, len(logp)), not ended)


WAY = MaskPredict()

__all__ = ["WAY", "Canvas", "MaskPredict", "blank_canvas", "least_sure", "refine"]
