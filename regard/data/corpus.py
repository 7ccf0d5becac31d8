"""Files of sentence pairs, read as a stream: the first file that a person's text meets.

A line ends at the byte "\\n" and nowhere else, so U+2028 and U+0085 stay inside it. Files may be
plain or gzip, told apart by their first bytes. The tokenizer and `store.py` read from here.
"""

import codecs
import gzip
import hashlib
import io
import stat
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import NamedTuple, NoReturn

from regard.data.parses import Parse, Parses
from regard.errors import DataError, StorageError, UsageError

_GZIP_MAGIC = b"\x1f\x8b"
_UTF16_MARKS = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


class Pair(NamedTuple):
    """One line and its translation; `line` counts from 1 in their own file."""

    src: str
    tgt: str
    line: int
    parse: Parse | None = None  # of the source, where the corpus has parses


class Fault(NamedTuple):
    """Something in a file that training refuses: `kind` is encoding, columns or misaligned."""

    kind: str
    path: Path
    line: int
    message: str


OnFault = Callable[[Fault], None]


def _refuse(fault: Fault) -> NoReturn:
    raise DataError(fault.message)


@dataclass(frozen=True)
class Corpus:
    """Aligned files: `sources[i]` with `targets[i]`, or `tables` with source, tab, target a line.

    `parses`, if there are any, are CoNLL-U files, one for each file of sources.
    """

    sources: tuple[Path, ...] = ()
    targets: tuple[Path, ...] = ()
    tables: tuple[Path, ...] = ()
    parses: tuple[Path, ...] = ()

    def __post_init__(self) -> None:
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
        paths = tuple(Path(path) for path in paths)
        if len(paths) == 1 or all(path.name.removesuffix(".gz").endswith(".tsv") for path in paths):
            return cls(tables=paths)
        if len(paths) == 2:
            return cls(sources=paths[:1], targets=paths[1:])
        raise UsageError(f"{len(paths)} files given; give a source and a target file, or files named .tsv")

    @property
    def paths(self) -> tuple[Path, ...]:
        """Every file, sources first."""
        return self.sources + self.targets + self.tables + self.parses

    def parts(self) -> list["Corpus"]:
        """One corpus a file, or a pair of files, in reading order."""
        parses: list[tuple[Path, ...]] = [(path,) for path in self.parses]
        parses = parses or [()] * len(self.sources + self.tables)
        if self.tables:
            return [Corpus(tables=(path,), parses=own) for path, own in zip(self.tables, parses, strict=True)]
        sides = zip(self.sources, self.targets, parses, strict=True)
        return [Corpus((src,), (tgt,), parses=own) for src, tgt, own in sides]

    def pairs(self, on_fault: OnFault = _refuse) -> Iterator[Pair]:
        """Every pair in order, the empty ones too.

        A fault raises DataError. With `on_fault` it is handed over just before its pair, and reading
        goes on: bad bytes become U+FFFD, missing columns are empty, unequal files end at the shorter.
        """
        for part in self.parts():
            if part.tables:
                pairs = _table_pairs(part.tables[0], on_fault)
            else:
                pairs = _side_by_side(part.sources[0], part.targets[0], on_fault)
            yield from _parsed(pairs, part) if part.parses else pairs

    def lines(self, on_fault: OnFault = _refuse) -> Iterator[str]:
        """Every source and target line, pair by pair: what a joint tokenizer is trained on."""
        for pair in self.pairs(on_fault):
            yield pair.src
            yield pair.tgt

    def check_paths(self) -> None:
        """Refuse files that are missing, empty, unreadable or no files; reads one line of each."""
        for path in self.paths:
            if next(read_lines(path), None) is None:
                raise DataError(f"{path} is empty; it should hold one sentence a line")

    def check_files(self) -> None:
        """Refuse every fault that training would meet, before any work is done: reads all once."""
        self.check_paths()
        for _ in self.pairs():
            pass

    def fingerprint(self) -> str:
        """A hash of what is in the files and how they are paired; names and dates do not count."""
        digest = hashlib.sha256(b"tables" if self.tables else b"sides")
        digest.update(b"parses" if self.parses else b"")
        for path in self.paths:
            with _reading(path), _open_file(path) as handle:
                digest.update(hashlib.file_digest(handle, "sha256").digest())
        return digest.hexdigest()


def read_lines(path: Path) -> Iterator[bytes]:
    """The lines of a plain or gzip file as bytes, without line ends and without a leading BOM."""
    with _reading(path), _open_file(path) as handle:
        zipped = handle.peek(2)[:2] == _GZIP_MAGIC
        # The outer buffer makes iterating over gzip lines several times quicker.
        stream = io.BufferedReader(gzip.GzipFile(fileobj=handle), 1 << 16) if zipped else handle
        for number, raw in enumerate(stream):
            raw = raw.rstrip(b"\r\n")
            yield raw if number else raw.removeprefix(codecs.BOM_UTF8)


def open_parses(paths: Sequence[Path]) -> Parses:
    """The sentences of CoNLL-U files, one file after the other."""
    return Parses(*((read_lines(path), str(path)) for path in paths))


def _open_file(path: Path) -> io.BufferedReader:
    """`path` opened for bytes, if it is a regular file: pipes cannot be read a second time."""
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise DataError(f"{path} is a directory; give a text file")
        if not stat.S_ISREG(mode):
            raise DataError(f"{path} is not a regular file, and it is read more than once; save it first")
        return path.open("rb")
    except FileNotFoundError:
        raise DataError(f"{path} does not exist; check the path") from None
    except OSError as error:
        raise DataError(f"cannot open {path}: {error.strerror}") from error


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    """What can go wrong between the disk and the bytes, as our errors."""
    try:
        yield
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DataError(f"{path} is a truncated or damaged gzip file ({error}); make it again") from error
    except OSError as error:
        raise StorageError(f"cannot read {path}: {error.strerror or error}") from error


def _decode(raw: bytes, path: Path, line: int, on_fault: OnFault) -> str:
    """The text of a line; strict UTF-8 without NUL."""
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        hint = "it looks like UTF-16" if line == 1 and raw.startswith(_UTF16_MARKS) else error.reason
        where = f"{path} line {line}: byte {error.start + 1} (0x{raw[error.start]:02x}) is not UTF-8"
        on_fault(Fault("encoding", path, line, f"{where}, {hint}; convert the file to UTF-8"))
        text = raw.decode("utf-8", "replace")
    if "\0" in text:
        on_fault(Fault("encoding", path, line, f"{path} line {line}: holds a NUL byte; is this a text file?"))
        text = text.replace("\0", "\ufffd")
    return text


def _table_pairs(path: Path, on_fault: OnFault) -> Iterator[Pair]:
    """Source, tab, target; a blank line is an empty pair."""
    for line, raw in enumerate(read_lines(path), 1):
        text = _decode(raw, path, line, on_fault)
        columns = text.split("\t") if text.strip() else ["", ""]
        if len(columns) != 2:
            found = "1 column" if len(columns) == 1 else f"{len(columns)} columns"
            message = f"{path} line {line}: {found} where a TSV has 2 (source, tab, target)"
            on_fault(Fault("columns", path, line, message))
        yield Pair(columns[0], columns[1] if len(columns) > 1 else "", line)


def _side_by_side(source: Path, target: Path, on_fault: OnFault) -> Iterator[Pair]:
    """Line n of one file with line n of the other; a file that goes on longer is a fault."""
    both = zip_longest(read_lines(source), read_lines(target))
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
        yield Pair(_decode(src, source, line, on_fault), _decode(tgt, target, line, on_fault), line)


def _parsed(pairs: Iterator[Pair], part: Corpus) -> Iterator[Pair]:
    """The pairs of one file or two, each with the parse of its source."""
    parses, text = open_parses(part.parses), part.paths[0]
    for pair in pairs:
        yield pair._replace(parse=parses.of(pair.src, f"{text} line {pair.line}"))
    parses.finish(str(text))


def _count(lines: int) -> str:
    return f"{lines:,} line{'' if lines == 1 else 's'}"
