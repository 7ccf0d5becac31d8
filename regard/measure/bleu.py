"""BLEU and chrF as sacreBLEU counts them; the signature names all that a score depends on (Post 2018).

Both are functions of counts that are summed over the lines (n-grams that are found again, lengths), so that
a test set of any size is scored in the memory of a handful of its lines.
"""

from collections.abc import Sequence
from typing import Any

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from regard.measure.score import Score


class TranslationScores:
    """The counts of the lines so far."""

    def __init__(self) -> None:
        self._metrics: dict[str, tuple[str, Any]] = {"bleu": ("BLEU", BLEU()), "chrf": ("chrF", CHRF())}
        self._sums: dict[str, list[int]] = {}
        self.count = 0

    def add(self, texts: Sequence[str], references: Sequence[str]) -> None:
        """Count some more texts, each with its reference."""
        for name, (_, metric) in self._metrics.items():
            # What sacreBLEU's own corpus_score takes first, for all lines at once.
            lines = metric._extract_corpus_statistics(list(texts), [list(references)])
            before = [self._sums[name]] if name in self._sums else []
            self._sums[name] = [sum(column) for column in zip(*before, *lines, strict=True)]
        self.count += len(texts)

    def scores(self) -> dict[str, Score]:
        """How close all of them are to their references, both from 0 to 100."""
        found = {}
        for name, (label, metric) in self._metrics.items():
            value = metric._compute_score_from_stats(self._sums[name]).score
            # The signature is filled in by counting, so the counts come first.
            signature = str(metric.get_signature())
            found[name] = Score(value, label=label, digits=1, signature=signature, count=self.count)
        return found


def translation_scores(texts: Sequence[str], references: Sequence[str]) -> dict[str, Score]:
    """How close the texts are to their references, both from 0 to 100."""
    counts = TranslationScores()
    counts.add(texts, references)
    return counts.scores()
