"""ROUGE, for short texts written from long ones: how much of the reference is found again (Lin 2004).

    ROUGE-L = F1 of the longest common subsequence of words

Counted by Google's rouge-score, which knows words of a-z and 0-9 alone: for other scripts take chrF. Stands
beside the BLEU of `evaluate.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from regard.errors import UsageError

_KINDS = ("rouge1", "rouge2", "rougeL")


@dataclass(frozen=True)
class Rouge:
    """Means of F1 over a test set, from 0 to 100."""

    rouge_1: float  # words
    rouge_2: float  # pairs of words
    rouge_l: float  # longest common subsequence
    signature: str


def require_rouge() -> Any:
    """The scorer; refuses where the package is missing, which is better said before work is done."""
    try:
        from rouge_score.rouge_scorer import RougeScorer
    except ImportError:
        raise UsageError("ROUGE needs the package rouge-score; install regard[documents]") from None
    return RougeScorer(list(_KINDS))


class RougeScores:
    """The sums of the lines so far."""

    def __init__(self) -> None:
        self._scorer, self._sums, self._count = require_rouge(), dict.fromkeys(_KINDS, 0.0), 0

    def add(self, texts: Sequence[str], references: Sequence[str]) -> None:
        """Count some more texts, each with its reference."""
        for text, reference in zip(texts, references, strict=True):
            found = self._scorer.score(reference, text)
            for kind in _KINDS:
                self._sums[kind] += found[kind].fmeasure
            self._count += 1

    def scores(self) -> Rouge:
        """The means of all of them."""
        one, two, subsequence = (100 * self._sums[kind] / self._count for kind in _KINDS)
        return Rouge(one, two, subsequence, f"rouge-score {version('rouge-score')}|F1|no stemming")


def rouge(texts: Sequence[str], references: Sequence[str]) -> Rouge:
    """The scores of texts against their references, one each."""
    sums = RougeScores()
    sums.add(texts, references)
    return sums.scores()
