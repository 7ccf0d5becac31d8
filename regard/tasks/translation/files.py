"""The files of pairs that `train`, `evaluate` and `check` are given, as a corpus; and those of a glossary.

Two arguments are source and target, one is a TSV. Each may be a list, from the command line with commas; a
path that exists is taken as it is, commas and all. A script may also hand over a corpus.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from regard.data.address import place
from regard.data.corpus import Corpus
from regard.data.lines import decode, read_lines
from regard.errors import DataError, UsageError

Files = str | Path | Sequence[str | Path] | Corpus
TERMS = 100_000  # of a glossary
_SHAPES = "give SRC TGT, or one PAIRS.tsv; several files go in one list with commas: a.en,b.en a.de,b.de"


def corpus_of(arguments: Sequence[Files], parses: Path | None = None) -> Corpus:
    """A corpus from the files as a person named them; each is there and holds something."""
    if len(arguments) > 2:
        raise UsageError(f"{len(arguments)} files given; {_SHAPES}")
    corpus = _corpus(*arguments)
    if parses:
        corpus = replace(corpus, parses=_listed(parses))
    corpus.check_paths()
    return corpus


def _corpus(first: Files, second: Files | None = None) -> Corpus:
    if isinstance(first, Corpus) and second is None:
        return first
    if isinstance(first, Corpus) or isinstance(second, Corpus):
        raise UsageError("a corpus holds its own targets; give it alone")
    if second is not None:
        return Corpus(sources=_listed(first), targets=_listed(second))
    alone = isinstance(first, str | Path)
    return Corpus(tables=_listed(first)) if alone else Corpus.of(_listed(first))


def _listed(argument: str | Path | Sequence[str | Path]) -> tuple[Path, ...]:
    """The paths of a list, or of one with commas."""
    if not isinstance(argument, str | Path):
        return tuple(place(path) for path in argument)
    if Path(argument).exists():
        return (Path(argument),)
    return tuple(place(name) for name in str(argument).split(",") if name)


def glossary_of(path: Path) -> dict[str, str]:
    """The terms of a TSV and what each must become; blank lines and those that begin with # are left out."""
    terms: dict[str, str] = {}
    for number, raw in enumerate(read_lines(path), 1):
        line = decode(raw, path, number)
        if not line.strip() or line.startswith("#"):
            continue
        parts = [part.strip() for part in line.split("\t")]
        if len(parts) != 2 or not all(parts):
            raise DataError(f"{path}, line {number}: give a term, a tab, and what it must become")
        if terms.setdefault(parts[0], parts[1]) != parts[1]:
            raise DataError(f"{path}, line {number}: {parts[0]!r} is there twice with other translations")
        if len(terms) > TERMS:
            raise DataError(f"{path} has more than {TERMS:,} terms")
    return terms
