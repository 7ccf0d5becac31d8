"""Running text: the documents in files and folders, read as a stream of which nothing is lost.

A file is a document, plain or gzip, UTF-8; of a folder, every text file below it, in the order of names.
What is no text is refused where it was named, and left out and counted where it only lay in a folder. After
this file: the tokenizer (`regard.text.running`) and `rows.py`.
"""

import codecs
import gzip
import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from regard.data.lines import is_gzip, open_file, reading
from regard.errors import DataError
from regard.text.running import SEAM

BLOCK = 2**20  # bytes that are read at once
PART = 2**16  # characters of a part, about
LONGEST_PART = 2**20  # a part without a seam is cut here: to tokenise it takes 145 bytes a character
HELD_OUT = 500_000  # characters at most
HELD_OUT_SHARE = 0.1  # of the text at most
LEAST = 2000  # characters; of less nothing can be spared
MANY = 20  # documents from which on whole ones are held out


class NotTextError(DataError):
    """A file that holds something else."""


@dataclass(frozen=True)
class Document:
    """Characters `begin` to `end` of a file; `digest` is of all that is in it."""

    path: Path
    digest: str
    begin: int
    end: int

    def __len__(self) -> int:
        return self.end - self.begin


class Part(NamedTuple):
    """Some text of a document; `last` closes it. Cut where words begin anew: ids are as of the whole."""

    text: str
    last: bool


@dataclass(frozen=True)
class Texts:
    """Files and folders of running text; they are looked through once, when they are first asked for."""

    paths: tuple[Path, ...]

    @property
    def documents(self) -> tuple[Document, ...]:
        """What is in them."""
        return self._found[0]

    @property
    def left_out(self) -> tuple[Path, ...]:
        """Files in folders that hold no text."""
        return self._found[1]

    @cached_property
    def _found(self) -> tuple[tuple[Document, ...], tuple[Path, ...]]:
        found: list[Document] = []
        others: list[Path] = []
        for given in self.paths:
            for path in files_of(given):
                try:
                    found.append(survey(path))
                except NotTextError:
                    if not given.is_dir():
                        raise
                    others.append(path)
            if given.is_dir() and not any(each.path.is_relative_to(given) for each in found):
                raise DataError(f"{given} holds no text file; give a folder with some, or a file")
        return tuple(found), tuple(others)

    def fingerprint(self) -> str:
        """A hash of what is in the documents, in their order; names and dates do not count."""
        return hashlib.sha256("".join(each.digest for each in self.documents).encode()).hexdigest()

    def summary(self) -> str:
        """One line for people."""
        count, letters = len(self.documents), sum(map(len, self.documents))
        others = f"; {len(self.left_out):,} files that hold no text left out" if self.left_out else ""
        return f"{count:,} document{'' if count == 1 else 's'}, {letters:,} characters{others}"


@dataclass(frozen=True)
class Running:
    """Text to train on, and text to validate on if that was given."""

    train: Texts
    valid: Texts | None = None

    @property
    def paths(self) -> tuple[Path, ...]:
        """The files and folders that are trained on."""
        return self.train.paths

    def check(self, *, thorough: bool) -> None:
        """Refuse bad data before anything is changed."""
        for texts in (self.train, self.valid):
            if texts is not None:
                _ = texts.documents

    def fingerprints(self) -> dict[str, str]:
        """Of both."""
        prints = {"training data": self.train.fingerprint()}
        return prints if self.valid is None else prints | {"validation data": self.valid.fingerprint()}

    def split(self) -> tuple[list[Document], list[Document]]:
        """Documents to train on, and to validate on."""
        if self.valid is not None:
            return list(self.train.documents), list(self.valid.documents)
        return hold_out(self.train.documents)


def files_of(given: Path) -> Iterator[Path]:
    """The file, or the files of a folder by name; those that a dot hides are not looked at."""
    if not given.is_dir():
        yield given
        return

    def fail(error: OSError) -> None:
        raise DataError(f"cannot open {error.filename}: {error.strerror}") from error

    for folder, below, names in os.walk(given, onerror=fail):
        below[:] = sorted(name for name in below if not name.startswith("."))
        files = (Path(folder, name) for name in sorted(names) if not name.startswith("."))
        yield from (path for path in files if path.is_file())


def survey(path: Path) -> Document:
    """A whole file as a document; NotTextError if it is none."""
    digest, letters, said = hashlib.sha256(), 0, False
    for text in _blocks(path):
        digest.update(text.encode())
        letters += len(text)
        said = said or bool(text.strip())
    if not said:
        raise NotTextError(f"{path} is empty; it should hold text")
    return Document(path, digest.hexdigest(), 0, letters)


def _blocks(path: Path) -> Iterator[str]:
    """The text of a file without a leading BOM, some at a time."""
    decoder, seen = codecs.getincrementaldecoder("utf-8-sig")(), 0
    with reading(str(path)), open_file(path, again=True) as handle:
        stream = gzip.GzipFile(fileobj=handle) if is_gzip(handle) else handle
        while True:
            raw = stream.read(BLOCK)
            if (place := raw.find(0)) >= 0:
                raise NotTextError(f"{path}: byte {seen + place + 1:,} is NUL; is this a text file?")
            held = len(decoder.getstate()[0])
            try:
                text = decoder.decode(raw, final=not raw)
            except UnicodeDecodeError as error:
                place = seen - held + error.start + 1
                raise NotTextError(
                    f"{path}: byte {place:,} (0x{error.object[error.start]:02x}) is not UTF-8; "
                    "convert the file, if it is text"
                ) from error
            seen += len(raw)
            if text:
                yield text
            if not raw:
                return


def parts(documents: Iterable[Document]) -> Iterator[Part]:
    """The text of documents, one after the other, in parts."""
    for document in documents:
        pending = ""
        for text in _clipped(document):
            pending += text
            while len(pending) > PART and (cut := _cut(pending)):
                yield Part(pending[:cut], last=False)
                pending = pending[cut:]
        yield Part(pending, last=True)


def _cut(text: str) -> int:
    """Where a part ends; 0 where there is no seam yet."""
    seam = SEAM.search(text, PART)
    return seam.start() if seam else LONGEST_PART if len(text) > LONGEST_PART else 0


def _clipped(document: Document) -> Iterator[str]:
    """The blocks of a file between the bounds of a document."""
    start = 0
    for text in _blocks(document.path):
        yield text[max(0, document.begin - start) : max(0, document.end - start)]
        start += len(text)
        if start >= document.end:
            return


def hold_out(documents: Sequence[Document]) -> tuple[list[Document], list[Document]]:
    """What is trained on, and what is measured on: a tenth of the text, or less where it is long.

    Of many documents whole ones are held out, chosen by a hash of their content, so that copies leave
    training together; of few, the end of each. Too little text to spare any: nothing is.
    """
    total = sum(map(len, documents))
    share = min(HELD_OUT_SHARE, HELD_OUT / max(1, total))
    if total < LEAST:
        return list(documents), []
    if len(documents) < MANY:
        cuts = [each.begin + int(len(each) * (1 - share)) for each in documents]
        halves = zip(documents, cuts, strict=True)
        ends = [replace(each, begin=cut) for each, cut in zip(documents, cuts, strict=True) if cut < each.end]
        return [replace(each, end=cut) for each, cut in halves if cut > each.begin], ends
    chosen, room = set(), share * total
    for digest, copies in groupby(sorted(documents, key=lambda each: each.digest), lambda each: each.digest):
        size = sum(map(len, copies))
        if size <= room:
            chosen.add(digest)
            room -= size
    held = {each.digest: each for each in reversed(documents) if each.digest in chosen}  # each text once
    kept = [each for each in documents if each.digest not in chosen]
    return kept, [each for each in documents if held.get(each.digest) is each]
