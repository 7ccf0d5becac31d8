"""Files of sentence pairs, read as a stream. Before this file: `lines.py`; the tokenizer and `store.py` read
from here.
"""

import hashlib
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple

from regard.data.address import place
from regard.data.lines import Fault, OnFault, decode, open_file, read_lines, reading, refuse
from regard.data.parses import Parse, Parses
from regard.errors import DataError, UsageError


class Group(NamedTuple):
    """Which pairs these are among those that are mixed, and the token that stands before their sources."""

    name: str
    tag: str = ""


class Pair(NamedTuple):
    """One line and its translation; `line` counts from 1 in their own file."""

    src: str
    tgt: str
    line: int
    parse: Parse | None = None  # of the source, where the corpus has parses
    group: Group | None = None  # where the corpus is a mixture


@dataclass(frozen=True)
class Corpus:
    """Aligned files: `sources[i]` with `targets[i]`, or `tables` with source, tab, target a line.

    `parses`, if there are any, are CoNLL-U files, one for each file of sources. A mixture has `members`
    instead of files, each of them a group.
    """

    sources: tuple[Path, ...] = ()
    targets: tuple[Path, ...] = ()
    tables: tuple[Path, ...] = ()
    parses: tuple[Path, ...] = ()
    group: Group | None = None
    members: tuple["Corpus", ...] = ()

    def __post_init__(self) -> None:
        if self.members:
            return
        if len(self.sources) != len(self.targets):
            raise UsageError(
                f"{len(self.sources)} source files but {len(self.targets)} target files; give as many of each"
            )
        if bool(self.sources) == bool(self.tables):
            raise UsageError("give either source and target files, or TSV files")
        texts = len(self.sources + self.tables)
        if self.parses and len(self.parses) != texts:
            raise UsageError(
                f"{len(self.parses)} files of parses but {texts} of sources; give as many of each"
            )

    @classmethod
    def of(cls, paths: Sequence[Path]) -> "Corpus":
        """One TSV file, several files named .tsv or .tsv.gz, or a source file and a target file."""
        paths = tuple(place(path) for path in paths)
        if len(paths) == 1 or all(path.name.removesuffix(".gz").endswith(".tsv") for path in paths):
            return cls(tables=paths)
        if len(paths) == 2:
            return cls(sources=paths[:1], targets=paths[1:])
        raise UsageError(f"{len(paths)} files given; give a source and a target file, or files named .tsv")

    @property
    def paths(self) -> tuple[Path, ...]:
        """Every file, sources first."""
        if self.members:
            return tuple(dict.fromkeys(path for each in self.members for path in each.paths))
        return self.sources + self.targets + self.tables + self.parses

    def parts(self) -> list["Corpus"]:
        """One corpus a file, or a pair of files, in reading order."""
        if self.members:
            return [part for each in self.members for part in each.parts()]
        parses: list[tuple[Path, ...]] = [(path,) for path in self.parses]
        parses = parses or [()] * len(self.sources + self.tables)
        if self.tables:
            tables = zip(self.tables, parses, strict=True)
            return [Corpus(tables=(path,), parses=own, group=self.group) for path, own in tables]
        sides = zip(self.sources, self.targets, parses, strict=True)
        return [Corpus((src,), (tgt,), parses=own, group=self.group) for src, tgt, own in sides]

    def pairs(self, on_fault: OnFault = refuse) -> Iterator[Pair]:
        """Every pair in order, the empty ones too.

        A fault raises DataError. With `on_fault` it is handed over just before its pair, and reading
        goes on: bad bytes become U+FFFD, missing columns are empty, unequal files end at the shorter.
        """
        for part in self.parts():
            if part.tables:
                pairs = _table_pairs(part.tables[0], on_fault)
            else:
                pairs = _side_by_side(part.sources[0], part.targets[0], on_fault)
            found = _parsed(pairs, part) if part.parses else pairs
            yield from found if part.group is None else (pair._replace(group=part.group) for pair in found)

    def lines(self, on_fault: OnFault = refuse) -> Iterator[str]:
        """Every source and target line, pair by pair: what a joint tokenizer is trained on."""
        for pair in self.pairs(on_fault):
            yield pair.src
            yield pair.tgt

    def check_paths(self) -> None:
        """Refuse files that are missing, empty, unreadable or no files; reads one line of each."""
        for path in self.paths:
            with closing(read_lines(path)) as lines:
                if next(lines, None) is None:
                    raise DataError(f"{path} is empty; it should hold one sentence a line")

    def check_files(self) -> None:
        """Refuse every fault that training would meet, before any work is done: reads all once."""
        self.check_paths()
        for _ in self.pairs():
            pass

    def fingerprint(self) -> str:
        """A hash of what is in the files and how they are paired; names and dates do not count."""
        if self.members:
            told = [f"{each.group} {each.fingerprint()}" for each in self.members]
            return hashlib.sha256("\n".join(told).encode()).hexdigest()
        digest = hashlib.sha256(b"tables" if self.tables else b"sides")
        digest.update(b"parses" if self.parses else b"")
        for path in self.paths:
            with reading(str(path)), open_file(path, again=True) as handle:
                digest.update(hashlib.file_digest(handle, "sha256").digest())
        return digest.hexdigest()


def open_parses(paths: Sequence[Path]) -> Parses:
    """The sentences of CoNLL-U files, one file after the other."""
    return Parses(*((read_lines(path), str(path)) for path in paths))


def _table_pairs(path: Path, on_fault: OnFault) -> Generator[Pair, None, None]:
    """Source, tab, target; a blank line is an empty pair."""
    with closing(read_lines(path)) as lines:
        for line, raw in enumerate(lines, 1):
            text = decode(raw, path, line, on_fault)
            columns = text.split("\t") if text.strip() else ["", ""]
            if len(columns) != 2:
                found = "1 column" if len(columns) == 1 else f"{len(columns)} columns"
                message = f"{path} line {line}: {found} where a TSV has 2 (source, tab, target)"
                on_fault(Fault("columns", path, line, message))
            yield Pair(columns[0], columns[1] if len(columns) > 1 else "", line)


def _side_by_side(source: Path, target: Path, on_fault: OnFault) -> Generator[Pair, None, None]:
    """Line n of one file with line n of the other; a file that goes on longer is a fault."""
    with closing(read_lines(source)) as ours, closing(read_lines(target)) as theirs:
        both = zip_longest(ours, theirs)
        for line, (src, tgt) in enumerate(both, 1):
            if src is None or tgt is None:
                longer = line + sum(1 for _ in both)
                counts = (line - 1, longer) if src is None else (longer, line - 1)
                message = (
                    f"{source} has {_count(counts[0])} but {target} has {_count(counts[1])}; "
                    "line n of one must translate line n of the other"
                )
                on_fault(Fault("misaligned", source, line, message))
                return
            yield Pair(decode(src, source, line, on_fault), decode(tgt, target, line, on_fault), line)


def _parsed(pairs: Generator[Pair, None, None], part: Corpus) -> Iterator[Pair]:
    """The pairs of one file or two, each with the parse of its source."""
    text = part.paths[0]
    with closing(pairs), closing(open_parses(part.parses)) as parses:
        for pair in pairs:
            yield pair._replace(parse=parses.of(pair.src, f"{text} line {pair.line}"))
        parses.finish(str(text))


def _count(lines: int) -> str:
    return f"{lines:,} line{'' if lines == 1 else 's'}"
