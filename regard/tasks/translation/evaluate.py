"""How good a translator is: BLEU and chrF as sacreBLEU counts them, ROUGE where asked for, and how fast.

The signature names everything that a score depends on, so that it can be compared (Post 2018). Lines are
translated, counted and forgotten, so that a test set of any length takes the memory of some of its lines.
"""

import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import islice, tee, zip_longest
from pathlib import Path
from typing import Any, Unpack

from regard.atomic import write_text
from regard.config.file import read_config
from regard.data.corpus import Corpus
from regard.errors import DataError
from regard.measure.bleu import TranslationScores, tokenizer_for
from regard.measure.paired import Paired, paired_bleu
from regard.measure.rouge import Rouge, RougeScores, require_rouge
from regard.measure.score import Score
from regard.tasks.task import Evaluation, Judge
from regard.tasks.translation.files import corpus_of
from regard.tasks.translation.load import load_translator
from regard.tasks.translation.manner import More
from regard.tasks.translation.translator import Translation, Translator, load_readable
from regard.text.directions import Directions
from regard.text.languages import languages_of
from regard.text.normalise import normalise

HANDFUL = 256  # lines that are counted together


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
    ter: Score | None = None
    paired: Paired | None = None  # with another model on the same lines

    def __str__(self) -> str:
        """As `regard evaluate` tells it."""
        return "\n".join(describe(self))

    def _repr_markdown_(self) -> str:
        """In a notebook."""
        return f"```text\n{self}\n```"


def score(
    translator: Translator,
    sources: Iterable[str],
    references: Iterable[str],
    *,
    beam: int | None = None,
    batch_size: int = 32,
    rouge: bool = False,
    counts: TranslationScores | None = None,
    **more: Unpack[More],
) -> Scores:
    """Translate `sources` and compare with `references`, line by line; with ROUGE if it is wanted."""
    lines = translator.stream(sources, beam=beam, batch_size=batch_size, **more)
    return compare(lines, references, rouge=rouge, counts=counts)


def compare(
    found: Iterable[Translation],
    references: Iterable[str],
    *,
    seconds: float | None = None,
    rouge: bool = False,
    counts: TranslationScores | None = None,
) -> Scores:
    """The scores of translations that took so many seconds; None: as long as `found` takes to come."""
    waited, tally = _Waited(found), _Tally(rouge, counts or TranslationScores())
    rows = zip_longest(waited, references)
    while handful := list(islice(rows, HANDFUL)):
        if any(None in row for row in handful):
            rest = list(zip(*handful, *rows, strict=True))
            sizes = [tally.lines + sum(each is not None for each in side) for side in rest]
            raise DataError(f"there are {sizes[0]} sources and {sizes[1]} references; lines must match")
        tally.add(handful)
    if not tally.lines:
        raise DataError("there is nothing to score: the test set has no lines")
    return tally.scores(waited.seconds if seconds is None else seconds)


class _Waited:
    """An iterator, and the seconds that it was waited for."""

    def __init__(self, inner: Iterable[Translation]) -> None:
        self._inner, self.seconds = iter(inner), 0.0

    def __iter__(self) -> Iterator[Translation]:
        return self

    def __next__(self) -> Translation:
        began = time.perf_counter()
        try:
            return next(self._inner)
        finally:
            self.seconds += time.perf_counter() - began


class _Tally:
    """What the lines so far came to."""

    def __init__(self, rouge: bool, counts: TranslationScores) -> None:
        self.counts, self.rouge = counts, RougeScores() if rouge else None
        self.lines = self.equal = self.tokens = 0

    def add(self, rows: Sequence[tuple[Translation, str]]) -> None:
        texts, references = [found.text for found, _ in rows], [reference for _, reference in rows]
        self.lines += len(rows)
        self.equal += sum(text == normalise(each) for text, each in zip(texts, references, strict=True))
        self.tokens += sum(found.tokens for found, _ in rows)
        self.counts.add(texts, references)
        if self.rouge:
            self.rouge.add(texts, references)

    def scores(self, seconds: float) -> Scores:
        scores = self.counts.scores()
        return Scores(
            bleu=scores["bleu"].value,
            chrf=scores["chrf"].value,
            signature=scores["bleu"].signature,
            sentences=self.lines,
            seconds=seconds,
            tokens_per_second=self.tokens / seconds if seconds > 0 else 0.0,
            exact=self.equal / self.lines,
            chrf_signature=scores["chrf"].signature,
            rouge=self.rouge.scores() if self.rouge else None,
            ter=scores.get("ter"),
        )


@dataclass(frozen=True)
class Wishes:
    """What is asked of an evaluation beside its scores."""

    tokenize: str = "auto"  # what BLEU cuts words with; auto: by the language of the references
    ter: bool = False
    output: Path | None = None  # where the translations go
    against: Path | None = None  # another model folder, on the same lines

    @classmethod
    def taken(cls, options: dict[str, Any]) -> "Wishes":
        """Those among the options, which lose them."""
        names = [each.name for each in fields(cls) if each.name in options]
        return cls(**{name: options.pop(name) for name in names})

    def counts(self, language: str) -> TranslationScores:
        """What counts lines of a language."""
        return TranslationScores(
            tokenizer_for(language) if self.tokenize == "auto" else self.tokenize, ter=self.ter
        )


def evaluation(
    folder: Path,
    files: Sequence[Path],
    *,
    parses: Path | None = None,
    beam: int | None = None,
    batch_size: int = 32,
    rouge: bool = False,
    exact: bool = False,
    **others: Any,
) -> Evaluation:
    """What `regard evaluate` tells of a translator; `others` are options of `load` and of `stream`."""
    more: More = {name: others.pop(name) for name in ("iterations", "lengths") if name in others}  # type: ignore
    wishes = Wishes.taken(others)
    others |= spoken(folder, files, others.get("source", ""), others.get("target", ""))
    counts = wishes.counts(others.get("target") or read_config(folder).text.target)
    if rouge:
        require_rouge()
    corpus = corpus_of(files, parses)
    corpus.check_files()
    translator = load_translator(folder, **others)
    for line in translator.notes:
        print(line, file=sys.stderr)
    if corpus.parses:
        translator = translator.parsed(*corpus.parses)
    # The references wait for as many lines as the translator reads ahead.
    ahead, behind = tee(corpus.pairs())
    sources, references = (pair.src for pair in ahead), (pair.tgt for pair in behind)
    search: dict[str, Any] = {"beam": beam, "batch_size": batch_size, **more}
    written = _Written(translator.stream(sources, **search), keep=bool(wishes.output or wishes.against))
    found = compare(written, references, rouge=rouge, counts=counts)
    if wishes.output:
        write_text(wishes.output, "".join(f"{text}\n" for text in written.texts))
    if wishes.against:
        found = replace(found, paired=_against(wishes.against, corpus, written.texts, counts, others, search))
    scores = named_scores(found)
    if not exact:
        del scores["exact"]  # scripts rely on the names that are left
    return Evaluation(scores, _more(found), describe(found))


def spoken(folder: Path, files: Sequence[Path], source: str = "", target: str = "") -> dict[str, str]:
    """The languages of a test set, for a folder that serves several: as said, or as the files are named."""
    directions = Directions.of(read_config(folder).text)
    if directions is None:
        return {}
    found = None if source or target else languages_of(files)
    pair = directions.chosen(*(found or (source, target)))
    return {"source": pair[0], "target": pair[1]}


class _Written:
    """Translations that pass by, and their texts if they are to be kept."""

    def __init__(self, found: Iterable[Translation], *, keep: bool) -> None:
        self._found, self._keep, self.texts = iter(found), keep, list[str]()

    def __iter__(self) -> Iterator[Translation]:
        return self

    def __next__(self) -> Translation:
        each = next(self._found)
        if self._keep:
            self.texts.append(each.text)
        return each


def _against(
    folder: Path,
    corpus: Corpus,
    texts: Sequence[str],
    counts: TranslationScores,
    loading: Mapping[str, Any],
    search: Mapping[str, Any],
) -> Paired:
    """Another model on the same lines, by the same rules."""
    other = load_translator(folder, **loading)
    pairs = list(corpus.pairs())
    others = [each.text for each in other.stream([pair.src for pair in pairs], **search)]
    return paired_bleu(texts, others, [pair.tgt for pair in pairs], counts.tokenize)


def judge(
    folder: Path, files: Sequence[Path], *, limit: int = 200, beam: int | None = None, batch_size: int = 32
) -> Judge:
    """A translator and its scores on the first `limit` pairs, greedily unless told."""
    corpus = corpus_of(files)
    corpus.check_files()
    pairs = list(islice(corpus.pairs(), limit))
    sources, references = [pair.src for pair in pairs], [pair.tgt for pair in pairs]
    languages = spoken(folder, files)
    translator = load_readable(folder)
    translator = translator.to(**languages) if languages else translator

    def measure() -> dict[str, Score]:
        return named_scores(score(translator, sources, references, beam=beam or 1, batch_size=batch_size))

    return Judge(translator.model, measure, f"{len(pairs):,} sentences")


def named_scores(found: Scores) -> dict[str, Score]:
    """BLEU, chrF and exact matches, by name."""
    count = found.sentences
    bleu = Score(found.bleu, label="BLEU", digits=2, signature=found.signature, count=count)
    chrf = Score(found.chrf, label="chrF", digits=2, signature=found.chrf_signature, count=count)
    exact = Score(100 * found.exact, label="exact match, %", digits=1, count=count)
    ter = {"ter": found.ter} if found.ter else {}
    return {"bleu": bleu, "chrf": chrf, **ter, "exact": exact}


def _more(found: Scores) -> dict[str, Any]:
    """The other fields of --json; scripts rely on these names."""
    told = {name: getattr(found, name) for name in ("signature", "sentences", "seconds", "tokens_per_second")}
    if found.rouge:
        told |= {name: getattr(found.rouge, name) for name in ("rouge_1", "rouge_2", "rouge_l")}
    if found.paired:
        told |= {"against_bleu": found.paired.other, "p_value": found.paired.p_value}
    return told


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
    if scores.ter:
        lines.insert(2, f"TER       {scores.ter.value:6.2f}   {scores.ter.signature}")
    if pair := scores.paired:
        verdict = "no luck" if pair.p_value < 0.05 else "it may be luck"
        lines.append(
            f"against   {pair.other:6.2f}   {pair.gain:+.2f} BLEU, p = {pair.p_value:.3f}: {verdict}"
        )
    return lines
