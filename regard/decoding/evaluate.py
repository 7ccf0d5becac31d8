"""How good a translator is: BLEU and chrF as sacreBLEU counts them, ROUGE where asked for, and how fast.

The signature names everything that a score depends on, so that it can be compared (Post 2018).
"""

import time
from collections.abc import Iterable
from dataclasses import dataclass

from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from regard.decoding.rouge import Rouge
from regard.decoding.rouge import rouge as score_rouge
from regard.decoding.translator import Translation, Translator
from regard.errors import DataError
from regard.text.normalise import normalise


@dataclass(frozen=True)
class Scores:
    """A test set's result; BLEU and chrF from 0 to 100."""

    bleu: float
    chrf: float
    signature: str  # of BLEU
    sentences: int
    seconds: float
    tokens_per_second: float  # written ones, the end counted
    exact: float  # share of lines equal to their reference, from 0 to 1
    chrf_signature: str = ""
    rouge: Rouge | None = None


def score(
    translator: Translator,
    sources: Iterable[str],
    references: Iterable[str],
    *,
    beam: int | None = None,
    batch_size: int = 32,
    rouge: bool = False,
) -> Scores:
    """Translate `sources` and compare with `references`, line by line; with ROUGE if it is wanted."""
    began = time.perf_counter()
    found = list(translator.stream(sources, beam=beam, batch_size=batch_size))
    return compare(found, list(references), seconds=time.perf_counter() - began, rouge=rouge)


def compare(
    found: list[Translation], references: list[str], *, seconds: float = 0.0, rouge: bool = False
) -> Scores:
    """The scores of translations that took so many seconds."""
    if len(found) != len(references):
        raise DataError(f"there are {len(found)} sources and {len(references)} references; lines must match")
    if not found:
        raise DataError("there is nothing to score: the test set has no lines")
    texts = [each.text for each in found]
    bleu, chrf = BLEU(), CHRF()
    equal = sum(text == normalise(reference) for text, reference in zip(texts, references, strict=True))
    # The signature is filled in by scoring, so the scores come first.
    scores = bleu.corpus_score(texts, [references]).score, chrf.corpus_score(texts, [references]).score
    return Scores(
        bleu=scores[0],
        chrf=scores[1],
        signature=str(bleu.get_signature()),
        sentences=len(texts),
        seconds=seconds,
        tokens_per_second=sum(each.tokens for each in found) / seconds if seconds > 0 else 0.0,
        exact=equal / len(texts),
        chrf_signature=str(chrf.get_signature()),
        rouge=score_rouge(texts, references) if rouge else None,
    )
