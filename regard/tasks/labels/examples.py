"""Labelled text as it lies in files: a text and its label a line, or words and their tags in CoNLL-U.

Both become the same: words with labels, `Example`; a text alone is one "word" with one label. Faults are told
with file and line. Before this file: `regard.data.lines`; after it: `lesson.py`.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from regard.data.lines import decode, open_file, read_lines, reading
from regard.errors import DataError, shown

COLUMNS = 10  # of CoNLL-U
TAGS = {"upos": 3}
LEAST = 2  # times that a label must be met to be learned


class Example(NamedTuple):
    """A text and its label, or words and theirs; `where` names the place for errors."""

    words: tuple[str, ...]
    labels: tuple[str, ...]
    where: str


class Fault(NamedTuple):
    """A line that cannot be learned from."""

    path: Path
    line: int
    message: str


@dataclass(frozen=True)
class Labelled:
    """Files to learn from, and to measure on if they are given."""

    train: tuple[Path, ...]
    valid: tuple[Path, ...] = ()
    column: str = ""  # of CoNLL-U; none: a text, a tab and a label a line

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files that are trained on."""
        return self.train

    def check(self, *, thorough: bool) -> None:
        """Refuse what cannot be learned from; reads all of it."""
        if not thorough:
            for path in (*self.train, *self.valid):
                open_file(path, again=True).close()
            return
        labels = self.labels()
        for example in self.read(self.valid):
            strange = [label for label in example.labels if label not in labels]
            if strange:
                raise DataError(f"{example.where}: the label {shown(strange[0])} is never met in training")

    def labels(self) -> dict[str, int]:
        """Every label of the training files, in the order of their names, with how often it is met."""
        counts: Counter[str] = Counter()
        for example in self.read(self.train):
            counts.update(example.labels)
        names = ", ".join(map(str, self.train))
        if not counts:
            raise DataError(f"{names}: there is nothing to learn from")
        if len(counts) == 1:
            only = shown(next(iter(counts)))
            raise DataError(f"{names}: every label is {only}; there must be two at least")
        rare = min(counts, key=lambda label: (counts[label], label))
        if counts[rare] < LEAST and not self.column:
            raise DataError(f"{names}: the label {shown(rare)} is met once; give more of it, or leave it out")
        return dict(sorted(counts.items()))

    def read(self, paths: Sequence[Path]) -> Iterator[Example]:
        """Every example of some files, in order; what is wrong raises DataError."""
        for path in paths:
            for found in self.look_through(path):
                if isinstance(found, Fault):
                    raise DataError(found.message)
                yield found

    def look_through(self, path: Path) -> Iterator[Example | Fault]:
        """Every example and every fault of a file."""
        yield from read_tagged(path, self.column) if self.column else read_texts(path)

    def fingerprints(self) -> dict[str, str]:
        """Of both."""
        prints = {"training data": _fingerprint(self.train)}
        return prints | ({"validation data": _fingerprint(self.valid)} if self.valid else {})


def _fingerprint(paths: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for path in paths:
        with reading(str(path)), open_file(path, again=True) as handle:
            digest.update(hashlib.file_digest(handle, "sha256").digest())
    return digest.hexdigest()


def read_texts(path: Path) -> Iterator[Example | Fault]:
    """A text, a tab and a label a line; blank lines are passed over."""
    with closing(read_lines(path)) as lines:
        for number, raw in enumerate(lines, 1):
            text = decode(raw, path, number)
            if not text.strip():
                continue
            where, columns = f"{path} line {number}", text.split("\t")
            if len(columns) != 2:
                found = "1 column" if len(columns) == 1 else f"{len(columns)} columns"
                yield Fault(path, number, f"{where}: {found} where there are 2 (text, tab, label)")
            elif not all(column.strip() for column in columns):
                missing = "label" if columns[0].strip() else "text"
                yield Fault(path, number, f"{where}: the {missing} is missing")
            else:
                yield Example((columns[0],), (columns[1].strip(),), where)


def read_tagged(path: Path, column: str) -> Iterator[Example | Fault]:
    """Sentences of CoNLL-U, a word a line; words of several (1-2) and empty ones (1.1) have no tag."""
    words: list[str] = []
    labels: list[str] = []
    begin = 0
    with closing(read_lines(path)) as lines:
        for number, raw in enumerate(lines, 1):
            text = decode(raw, path, number)
            if text.startswith("#"):
                continue
            if not text.strip():
                if words:
                    yield Example(tuple(words), tuple(labels), f"{path} line {begin}")
                words, labels = [], []
                continue
            columns = text.split("\t")
            label = columns[TAGS[column]] if len(columns) == COLUMNS else ""
            if len(columns) != COLUMNS:
                message = f"{path} line {number}: {len(columns)} columns where CoNLL-U has {COLUMNS}"
                yield Fault(path, number, message)
            elif columns[0].replace("-", "").replace(".", "") != columns[0]:
                continue
            elif label in ("", "_") or not columns[1].strip():
                yield Fault(path, number, f"{path} line {number}: a word or its {column} is missing")
            else:
                begin = begin if words else number
                words.append(columns[1])
                labels.append(label)
    if words:
        yield Example(tuple(words), tuple(labels), f"{path} line {begin}")
