"""Recordings and what is said in them, as people keep them on disk.

    F.tsv               path, tab, text; a header (file, text) or none; paths are relative to the file
    DIR/metadata.csv    LJSpeech: name|text|normalised text, with wavs/NAME.wav; or Hugging Face's
                        audiofolder: file_name,transcription (also metadata.jsonl)
    DIR/**/*.trans.txt  LibriSpeech: NAME, space, text, with NAME.flac beside it

Folders in it that are called train, dev or test, or train-clean-100, are parts, kept apart (`of_part`).
Faults are told with file and line. After this file: `regard.tasks.speech.examples`.
"""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from regard.audio.sound import ENDINGS
from regard.data.lines import cells_of, decode, read_lines
from regard.errors import DataError, shown
from regard.foreign import loads

_LISTS = ("metadata.tsv", "metadata.csv", "metadata.jsonl")
_PATHS = ("file", "file_name", "path", "audio", "filename")
_TEXTS = ("text", "transcription", "transcript", "sentence")


_PARTS = {"train": ("train",), "valid": ("valid", "validation", "val", "dev"), "test": ("test",)}


class Spoken(NamedTuple):
    """A recording and its text; `where` names the line for errors."""

    path: Path
    text: str
    where: str


class Fault(NamedTuple):
    """A line that cannot be learned from."""

    path: Path
    line: int
    message: str


def of_part(path: Path, part: str) -> list[Path]:
    """What holds the train, valid or test part of a folder; the path itself where it has none.

    Where there is nothing to test on it is what was validated on.

    LibriSpeech unpacks to a folder of its name, whose parts begin so: train-clean-100, dev-other.
    """
    root = path / "LibriSpeech" if (path / "LibriSpeech").is_dir() else path
    if not root.is_dir() or any((root / name).is_file() for name in _LISTS):
        return [path]
    parts: dict[str, list[Path]] = {}
    for each in sorted(each for each in root.iterdir() if each.is_dir()):
        word = each.name.lower().replace("_", "-").partition("-")[0]
        for name, words in _PARTS.items():
            if word in words:
                parts.setdefault(name, []).append(each)
    return parts.get(part) or (parts.get("valid") if part == "test" else None) or [path]


def look_through(path: Path) -> Iterator[Spoken | Fault]:
    """Every recording and every fault of a file or a folder, in order."""
    if path.is_dir():
        yield from _folder(path)
    elif not path.exists():
        raise DataError(f"{path} does not exist; give a TSV of file and text, or a folder of recordings")
    elif path.suffix == ".jsonl":
        yield from _json_lines(path)
    elif path.suffix == ".csv":
        yield from _csv(path)
    elif path.suffix in ENDINGS:
        raise DataError(f"{path} is a recording; give a TSV that says what is said in it")
    else:
        yield from _tsv(path)


def read_spoken(path: Path) -> Iterator[Spoken]:
    """Every recording of a file or folder; the first fault raises DataError."""
    for found in look_through(path):
        if isinstance(found, Fault):
            raise DataError(found.message)
        yield found


def _folder(folder: Path) -> Iterator[Spoken | Fault]:
    for name in _LISTS:
        if (folder / name).is_file():
            return look_through(folder / name)
    lists = sorted(folder.rglob("*.trans.txt"))
    if not lists:
        raise DataError(
            f"{folder} holds no metadata.tsv, metadata.csv, metadata.jsonl or *.trans.txt with what is said"
        )
    return (found for path in lists for found in _librispeech(path))


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    with closing(read_lines(path)) as lines:
        for number, raw in enumerate(lines, 1):
            text = decode(raw, path, number)
            if text.strip():
                yield number, text


def _spoken(path: Path, number: int, name: str, text: str, folder: Path | None = None) -> Spoken | Fault:
    where = f"{path} line {number}"
    if not name.strip() or not text.strip():
        return Fault(path, number, f"{where}: the {'text' if name.strip() else 'file'} is missing")
    if "\0" in name:
        return Fault(path, number, f"{where}: {shown(name)} is no name of a file")
    return Spoken((folder or path.parent) / name.strip(), " ".join(text.split()), where)


def _tsv(path: Path) -> Iterator[Spoken | Fault]:
    places, width = (0, 1), 2
    for number, line in _lines(path):
        cells = line.split("\t")
        if number == 1 and (found := _header(cells)):
            places, width = found, len(cells)
        elif len(cells) != width:
            columns = "1 column" if len(cells) == 1 else f"{len(cells)} columns"
            yield Fault(
                path, number, f"{path} line {number}: {columns} where there are {width} (file, tab, text)"
            )
        else:
            yield _spoken(path, number, cells[places[0]], cells[places[1]])


def _header(cells: list[str]) -> tuple[int, int] | None:
    """The columns of path and text, if these are names of columns."""
    names = [cell.strip().lower() for cell in cells]
    paths = [names.index(name) for name in _PATHS if name in names]
    texts = [names.index(name) for name in _TEXTS if name in names]
    return (paths[0], texts[0]) if paths and texts else None


def _csv(path: Path) -> Iterator[Spoken | Fault]:
    """LJSpeech's, cut at bars, or audiofolder's, whose first line names its columns."""
    lines = _lines(path)
    first = next(lines, None)
    if first is None:
        return
    found = _header(cells_of(first[1], path, first[0]))
    if found is None:
        if "|" not in first[1]:
            yield Fault(path, first[0], f"{path} line 1: neither file_name and text nor LJSpeech's name|text")
            return
        wavs = path.parent / "wavs"
        for number, line in (first, *lines):
            cells = line.split("|")
            name = f"{cells[0].strip()}.wav" if cells[0].strip() else ""
            yield _spoken(path, number, name, (cells[2:] or cells[1:] or [""])[0], wavs)
        return
    for number, line in lines:
        cells = cells_of(line, path, number)
        if max(found) >= len(cells):
            yield Fault(path, number, f"{path} line {number}: {len(cells)} columns, too few")
        else:
            yield _spoken(path, number, cells[found[0]], cells[found[1]])


def _json_lines(path: Path) -> Iterator[Spoken | Fault]:
    for number, line in _lines(path):
        try:
            tree = loads(line)
        except ValueError:
            tree = None
        tree = tree if isinstance(tree, dict) else {}
        cells = [str(key) for key in tree]
        found = _header(cells)
        if found is None or not all(isinstance(tree[cells[place]], str) for place in found):
            yield Fault(path, number, f"{path} line {number}: no object with file_name and text")
        else:
            yield _spoken(path, number, tree[cells[found[0]]], tree[cells[found[1]]])


def _librispeech(path: Path) -> Iterator[Spoken | Fault]:
    for number, line in _lines(path):
        name, _, text = line.partition(" ")
        there = [path.with_name(name + ending) for ending in ENDINGS if name and "/" not in name]
        here = next((each.name for each in there if each.exists()), f"{name}.flac" if name else "")
        yield _spoken(path, number, here, text)
