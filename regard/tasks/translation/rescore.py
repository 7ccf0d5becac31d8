"""Another model has the last word: it says how likely each output is, and the likeliest comes first.

A model that writes all at once finds several outputs, none of which it has read from left to right; one that
writes token by token reads them all in one pass (noisy parallel decoding, Gu et al. 2018). Before this file:
`translator.py`; called by it.
"""

from collections.abc import Sequence
from dataclasses import replace
from os import PathLike

import torch

from regard.data.inputs import pad_sources
from regard.decoding.search import Hypothesis
from regard.decoding.way import STEPS, way_of
from regard.errors import ModelError, UsageError
from regard.tasks.translation.translator import Translator, load_readable

ROWS = 64  # outputs that are read together


class Rescoring:
    """Outputs of one vocabulary, judged by a model that writes token by token."""

    def __init__(self, judge: Translator) -> None:
        self.judge = judge

    def __call__(
        self, sources: Sequence[Sequence[int]], found: Sequence[Sequence[Hypothesis]]
    ) -> list[list[Hypothesis]]:
        """The outputs of each source, scored by log p / length ** penalty of the judge, best first."""
        rows = [(source, each) for source, outputs in zip(sources, found, strict=True) for each in outputs]
        scores: list[float] = []
        for start in range(0, len(rows), ROWS):
            scores += self._scores(rows[start : start + ROWS])
        judged = iter(scores)
        scored = [[replace(each, score=next(judged)) for each in outputs] for outputs in found]
        return [sorted(outputs, key=lambda each: -each.score) for outputs in scored]

    @torch.inference_mode()
    def _scores(self, rows: Sequence[tuple[Sequence[int], Hypothesis]]) -> list[float]:
        model, specials = self.judge.model, self.judge.tokenizer.specials
        written = [[*each.ids, specials.end] for _, each in rows]
        read = pad_sources([[specials.begin, *ids[:-1]] for ids in written])
        goals = pad_sources(written)
        logits = model.project(model(pad_sources([source for source, _ in rows]), read.ids)).float()
        logp = logits.log_softmax(-1).gather(2, goals.ids[..., None])[..., 0]  # (R, T)
        totals = (logp * goals.real).sum(1).tolist()
        penalty = self.judge.decode.length_penalty
        return [total / len(ids) ** penalty for total, ids in zip(totals, written, strict=True)]


def load_rescorer(folder: str | PathLike[str], translator: Translator) -> Rescoring:
    """The judge in a model folder, for the outputs of `translator`."""
    judge = load_readable(folder)
    ours, theirs = translator.tokenizer, judge.tokenizer
    if (ours.pieces, ours.target_pieces) != (theirs.pieces, theirs.target_pieces):
        raise ModelError(
            f"{folder} has another vocabulary ({theirs.target_vocab_size:,} tokens, this model "
            f"{ours.target_vocab_size:,}); the rescorer must be its teacher, or share its vocabulary"
        )
    if way_of(judge.model) is not STEPS and not hasattr(judge.model, "step"):
        raise UsageError(f"{folder} writes all at once; a rescorer reads from left to right")
    return Rescoring(judge)


__all__ = ["Rescoring", "load_rescorer"]
