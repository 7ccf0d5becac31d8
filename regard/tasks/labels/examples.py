"""Labelled text as it lies in files: a text and its label a line, or words and their tags a line each.

All become the same: words with labels, `Example`; a text alone is one "word" with one label. Faults are told
with file and line. Before this file: `regard.data.lines`; after it: `lesson.py`.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from regard.data.lines import decode, open_file, read_lines, reading
from regard.errors import DataError, shown

COLUMNS = 10  # of CoNLL-U
PLAIN = 2  # a word and its tag
TAGS = {"upos": 3, "xpos": 4, "deprel": 7}
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
    column: str = ""  # of CoNLL-U, for tags; none: a text, a tab and a label a line

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files that are trained on."""
        return self.train

    def check(self, *, thorough: bool) -> None:
        """Refuse files that are not there. What is in them is refused when the column is known: `refuse`."""
        for path in (*self.train, *self.valid):
            open_file(path, again=True).close()

    def by(self, column: str) -> "Labelled":
        """The same with the tags of that column, where tags are asked for."""
        return replace(self, column=column if self.column else "")

    def refuse(self) -> None:
        """DataError for what cannot be learned from; reads all of it."""
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
    """Sentences, a word a line and a blank line between them: CoNLL-U, or a word, a tab and its tag.

    The first word says which of the two a file is. In CoNLL-U words of several (1-2) and empty ones (1.1)
    have no tag.
    """
    words: list[str] = []
    labels: list[str] = []
    begin = width = 0
    with closing(read_lines(path)) as lines:
        for number, raw in enumerate(lines, 1):
            text = decode(raw, path, number)
            if _comment(text, width):
                continue
            if not text.strip():
                if words:
                    yield Example(tuple(words), tuple(labels), f"{path} line {begin}")
                words, labels = [], []
                continue
            columns = text.split("\t")
            width = width or (PLAIN if len(columns) == PLAIN else COLUMNS)
            found = _word(columns, width, column)
            if isinstance(found, str):
                yield Fault(path, number, f"{path} line {number}: {found}")
            elif found is not None:
                begin = begin if words else number
                words.append(found[0])
                labels.append(found[1])
    if words:
        yield Example(tuple(words), tuple(labels), f"{path} line {begin}")


def _comment(text: str, width: int) -> bool:
    """Whether a line says something about the sentence; where a tag follows, # is a word like others."""
    tagged = text.count("\t") == 1 and (width == PLAIN or text.startswith("#\t"))
    return text.startswith("#") and not tagged


def _word(columns: list[str], width: int, column: str) -> tuple[str, str] | str | None:
    """The word and the tag of a line, what is wrong with it, or None where it has none."""
    if len(columns) != width:
        wanted = (
            f"the words before have {PLAIN} (word, tab, tag)" if width == PLAIN else f"CoNLL-U has {COLUMNS}"
        )
        return f"{len(columns)} column{'s' if len(columns) > 1 else ''} where {wanted}"
    if width == PLAIN:
        word, label = columns[0], columns[1].strip()
        return (word, label) if word.strip() and label else "a word or its tag is missing"
    if columns[0].replace("-", "").replace(".", "") != columns[0]:
        return None
    word, label = columns[1], columns[TAGS[column]]
    return (word, label) if word.strip() and label not in ("", "_") else f"a word or its {column} is missing"
