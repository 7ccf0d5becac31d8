"""How good a translator is: BLEU and chrF as sacreBLEU counts them, ROUGE where asked for, and how fast.

The signature names everything that a score depends on, so that it can be compared (Post 2018).
"""

import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.errors import DataError
from regard.measure.bleu import translation_scores
from regard.measure.rouge import Rouge, require_rouge
from regard.measure.rouge import rouge as score_rouge
from regard.measure.score import Score
from regard.tasks.task import Evaluation
from regard.tasks.translation.files import corpus_of
from regard.tasks.translation.load import load_translator
from regard.tasks.translation.translator import Translation, Translator
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
    equal = sum(text == normalise(reference) for text, reference in zip(texts, references, strict=True))
    scores = translation_scores(texts, references)
    return Scores(
        bleu=scores["bleu"].value,
        chrf=scores["chrf"].value,
        signature=scores["bleu"].signature,
        sentences=len(texts),
        seconds=seconds,
        tokens_per_second=sum(each.tokens for each in found) / seconds if seconds > 0 else 0.0,
        exact=equal / len(texts),
        chrf_signature=scores["chrf"].signature,
        rouge=score_rouge(texts, references) if rouge else None,
    )


def evaluation(
    folder: Path,
    files: Sequence[Path],
    *,
    parses: Path | None = None,
    beam: int | None = None,
    batch_size: int = 32,
    rouge: bool = False,
    **loading: Any,
) -> Evaluation:
    """What `regard evaluate` tells of a translator; `loading` are the options of `load`."""
    if rouge:
        require_rouge()
    corpus = corpus_of(files, parses)
    corpus.check_files()
    translator = load_translator(folder, **loading)
    if translator.note:
        print(translator.note, file=sys.stderr)
    if corpus.parses:
        translator = translator.parsed(*corpus.parses)
    pairs = list(corpus.pairs())
    sources, references = [pair.src for pair in pairs], [pair.tgt for pair in pairs]
    found = score(translator, sources, references, beam=beam, batch_size=batch_size, rouge=rouge)
    scores = named_scores(found)
    del scores["exact"]  # scripts rely on the names that are left
    return Evaluation(scores, _more(found), describe(found))


def named_scores(found: Scores) -> dict[str, Score]:
    """BLEU, chrF and exact matches, by name."""
    count = found.sentences
    bleu = Score(found.bleu, label="BLEU", digits=2, signature=found.signature, count=count)
    chrf = Score(found.chrf, label="chrF", digits=2, signature=found.chrf_signature, count=count)
    exact = Score(100 * found.exact, label="exact match, %", digits=1, count=count)
    return {"bleu": bleu, "chrf": chrf, "exact": exact}


def _more(found: Scores) -> dict[str, Any]:
    """The other fields of --json; scripts rely on these names."""
    fields = {
        name: getattr(found, name) for name in ("signature", "sentences", "seconds", "tokens_per_second")
    }
    if found.rouge:
        fields |= {name: getattr(found.rouge, name) for name in ("rouge_1", "rouge_2", "rouge_l")}
    return fields


def describe(scores: Scores) -> list[str]:
    """The scores as a person reads them."""
    lines = [
        f"BLEU      {scores.bleu:6.2f}   {scores.signature}",
        f"chrF      {scores.chrf:6.2f}   {scores.chrf_signature}",
        f"exact     {scores.exact:6.1%}   of {scores.sentences:,} lines equal to their reference",
        f"time      {scores.seconds:6.1f} s {scores.tokens_per_second:,.0f} tokens/s",
    ]
    if rouge := scores.rouge:
        parts = f"ROUGE-1 {rouge.rouge_1:.2f}, ROUGE-2 {rouge.rouge_2:.2f}; {rouge.signature}"
        lines.insert(2, f"ROUGE-L   {rouge.rouge_l:6.2f}   {parts}")
    return lines
