"""The files of pairs that `train`, `evaluate` and `check` are given, as a corpus.

Two arguments are source and target, one is a TSV. Each may be a list with commas; a path that exists is
taken as it is, commas and all.
"""

from collections.abc import Sequence
from pathlib import Path

from regard.data.corpus import Corpus
from regard.errors import UsageError

_SHAPES = "give SRC TGT, or one PAIRS.tsv; several files go in one list with commas: a.en,b.en a.de,b.de"


def corpus_of(arguments: Sequence[Path], parses: Path | None = None) -> Corpus:
    """A corpus from the files as a person named them; each is there and holds something."""
    if len(arguments) > 2:
        raise UsageError(f"{len(arguments)} files given; {_SHAPES}")
    lists = [_listed(argument) for argument in arguments]
    trees = _listed(parses) if parses else ()
    if len(lists) == 1:
        corpus = Corpus(tables=lists[0], parses=trees)
    else:
        corpus = Corpus(sources=lists[0], targets=lists[1], parses=trees)
    corpus.check_paths()
    return corpus


def _listed(argument: Path) -> tuple[Path, ...]:
    """The paths in a list with commas."""
    if argument.exists():
        return (argument,)
    return tuple(Path(name) for name in str(argument).split(",") if name)
