"""BLEU and chrF as sacreBLEU counts them; the signature names all that a score depends on (Post 2018)."""

from collections.abc import Sequence

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from regard.measure.score import Score


def translation_scores(texts: Sequence[str], references: Sequence[str]) -> dict[str, Score]:
    """How close the texts are to their references, both from 0 to 100."""
    found = {}
    for name, label, metric in (("bleu", "BLEU", BLEU()), ("chrf", "chrF", CHRF())):
        value = metric.corpus_score(list(texts), [list(references)]).score
        # The signature is filled in by scoring, so the score comes first.
        signature = str(metric.get_signature())
        found[name] = Score(value, label=label, digits=1, signature=signature, count=len(texts))
    return found
