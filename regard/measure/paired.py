"""Whether one set of outputs is better than another, or only luckier: the paired bootstrap (Koehn 2004).

Test sets are drawn from the test set, with lines coming twice or not at all; p is how often the difference of
two equally good systems would be as large. sacreBLEU does it; BLEU here is the one of `bleu.py`.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

from sacrebleu.significance import PairedTest, Result

from regard.errors import DataError
from regard.measure.bleu import bleu_with

SAMPLES = 1000


@dataclass(frozen=True)
class Paired:
    """BLEU of two systems on the same lines."""

    bleu: float
    other: float
    p_value: float  # small: the difference is no luck

    @property
    def gain(self) -> float:
        """How much better the first is."""
        return self.bleu - self.other


def paired_bleu(
    texts: Sequence[str], others: Sequence[str], references: Sequence[str], tokenize: str = "13a"
) -> Paired:
    """The BLEU of `texts` and of `others`, and how likely their difference is chance."""
    if not len(texts) == len(others) == len(references):
        raise DataError(f"there are {len(texts)} and {len(others)} outputs for {len(references)} references")
    log = logging.getLogger("sacrebleu")
    level = log.level
    log.setLevel(logging.WARNING)  # it tells every step
    try:
        systems: list[tuple[str, Sequence[str]]] = [("other", list(others)), ("this", list(texts))]
        test = PairedTest(
            systems, {"BLEU": bleu_with(tokenize)}, [list(references)], test_type="bs", n_samples=SAMPLES
        )
        other, this = test()[1]["BLEU"]
    finally:
        log.setLevel(level)
    assert isinstance(this, Result)
    assert isinstance(other, Result)
    if this.score == other.score or this.p_value is None:  # sacreBLEU calls no difference a sure one
        return Paired(this.score, other.score, 1.0)
    return Paired(this.score, other.score, float(this.p_value))
