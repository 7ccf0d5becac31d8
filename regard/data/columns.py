"""Examples on disk as named columns: made once, memory-mapped, reused, whole or not there at all.

A column holds a row of numbers for each example, of any length: `NAME.bin` has them all end to end, and
`NAME.offsets` (int64) where each row starts. Many examples are in shards: `NAME.1.bin` goes on where
`NAME.bin` ends. `meta.json` has the fingerprint of what they were made from, types, a hash of each file and
a report. It is built beside its place and renamed into it. A task says which columns it has: `store.py`
keeps pairs of sentences in two.
"""

import hashlib
import json
import shutil
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from regard.errors import DataError, ModelError, StorageError, UsageError
from regard.foreign import read_json

Chunk = Mapping[str, Sequence[Any]]  # by column, a row for each example: numbers, or an array (n, *shape)
_FORMAT = 1
_META = "meta.json"
_MOST_SHARDS = 1_000_000


@dataclass(frozen=True)
class Kind:
    """What a column's numbers are; `shape` is that of one of them, () for plain numbers."""

    dtype: str
    shape: tuple[int, ...] = ()


class Shards:
    """Arrays that stay where they are and are asked as if they lay end to end in one."""

    def __init__(self, parts: Sequence[npt.NDArray[Any]]) -> None:
        self.parts = parts
        self.starts = np.cumsum([0, *map(len, parts)])

    def __len__(self) -> int:
        return int(self.starts[-1])

    def __getitem__(self, places: "slice | npt.NDArray[Any]") -> npt.NDArray[Any]:
        """What stands at the places; a slice inside of one shard is a view."""
        if isinstance(places, slice):
            low, high, _ = places.indices(len(self))
            cuts = [(max(low, start), min(high, end)) for start, end in pairwise(self.starts)]
            found = [
                part[begin - start : end - start]
                for part, start, (begin, end) in zip(self.parts, self.starts, cuts, strict=False)
                if begin < end
            ]
            whole: npt.NDArray[Any] = (
                found[0] if len(found) == 1 else np.concatenate([self.parts[0][:0], *found])
            )
            return whole
        first = self.parts[0]
        values: npt.NDArray[Any] = np.empty((*places.shape, *first.shape[1:]), first.dtype)
        shard = np.searchsorted(self.starts, places, side="right") - 1
        for number in np.unique(shard):
            here = shard == number
            values[here] = self.parts[number][places[here] - self.starts[number]]
        return values


@dataclass(frozen=True)
class Column:
    """The rows of one column: `values` (total, *shape) end to end, `offsets` (N + 1,) between them."""

    values: Any  # an array, or `Shards`
    offsets: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @property
    def lengths(self) -> npt.NDArray[np.int64]:
        """How long each row is: (N,)."""
        return np.diff(self.offsets)

    def row(self, index: int) -> npt.NDArray[Any]:
        """One row (n, *shape)."""
        row: npt.NDArray[Any] = self.values[self.offsets[index] : self.offsets[index + 1]]
        return row

    def padded(self, indices: npt.NDArray[Any], fill: float = 0, *, more: int = 0) -> npt.NDArray[Any]:
        """Some rows (B, L + more, *shape), each filled up to the longest one and `more` places beyond."""
        starts, lengths = self.offsets[indices][:, None], self.lengths[indices][:, None]
        columns = np.arange(int(lengths.max(initial=0)) + more)
        # Places past a row read on into the next one and are overwritten; the last must not.
        places = np.minimum(starts + columns, max(0, len(self.values) - 1))  # (B, L)
        rows: npt.NDArray[Any] = self.values[places]
        rows[columns >= lengths] = fill
        return rows


@dataclass(frozen=True)
class Columns:
    """Examples, numbered from 0."""

    columns: Mapping[str, Column]
    report: dict[str, Any]
    folder: Path

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def __getitem__(self, name: str) -> Column:
        return self.columns[name]


def open_columns(
    folder: Path,
    inputs: Sequence[Any],
    kinds: Mapping[str, Kind],
    chunks: Callable[[dict[str, Any]], Iterable[Chunk]],
    *,
    shard: int = 0,
) -> Columns:
    """The columns in `folder`: reused if they are whole and made of the same `inputs`, else made.

    `inputs` is what their content depends on, as plain values. `chunks` gives the examples, some at a time,
    and may fill the report that it is handed. One builder a folder at a time; memory stays constant. With
    `shard`, about so many examples share a file; what is in shards is not made again where one of them is
    lost or changed, for that may take a day: DataError says which.
    """
    key = hashlib.sha256(json.dumps([_FORMAT, *inputs], sort_keys=True).encode()).hexdigest()
    meta = _reusable(folder, key)
    if meta is None:
        _build(folder, key, kinds, chunks, shard)
        meta = _read_meta(folder)
        assert meta is not None
    return _map(folder, meta)


def reopen_columns(folder: Path) -> Columns | None:
    """What lies in `folder`, whatever it was made of; None if there is nothing that is whole."""
    meta = _read_meta(folder)
    whole = None if meta is None else _reusable(folder, str(meta.get("fingerprint")))
    return None if whole is None else _map(folder, whole)


def _kinds(meta: Mapping[str, Any]) -> dict[str, Kind]:
    """The columns that a folder says it has; the first version had two of one type, and did not say so."""
    held = meta.get("columns") or {name: {"dtype": meta["dtype"]} for name in ("src", "tgt")}
    return {name: Kind(each["dtype"], tuple(each.get("shape", ()))) for name, each in held.items()}


def _names(kinds: Iterable[str], shards: int) -> list[str]:
    return [file for name in kinds for file in (*_values(name, shards), f"{name}.offsets")]


def _values(name: str, shards: int) -> list[str]:
    return [f"{name}.bin", *(f"{name}.{number}.bin" for number in range(1, shards))]


def _shards(meta: Mapping[str, Any]) -> int:
    """How many files the values of a column are in."""
    told = meta.get("shards", 1)
    return told if isinstance(told, int) and 1 <= told <= _MOST_SHARDS else 1


def _read_meta(folder: Path) -> dict[str, Any] | None:
    try:
        meta = read_json(folder / _META)
    except ModelError:
        return None
    return meta if meta.get("format") == _FORMAT else None


def _reusable(folder: Path, key: str) -> dict[str, Any] | None:
    """The meta of columns that were made of the same inputs and are whole; None asks for new ones."""
    meta = _read_meta(folder)
    if meta is None or meta.get("fingerprint") != key:
        return None
    try:
        names = _names(_kinds(meta), _shards(meta))
        if _shards(meta) > 1:
            _refuse_changed(folder, names, meta["files"])
            return meta
        whole = all(meta["files"][name] == _describe(folder / name) for name in names)
        known = meta["files"].keys() == set(names)
    except (OSError, KeyError, TypeError, AttributeError):
        return None
    return meta if whole and known else None


def _refuse_changed(folder: Path, names: Iterable[str], files: Mapping[str, Any]) -> None:
    """Say which of many files is not what it was."""
    for name in names:
        there = (folder / name).is_file()
        if not there or files[name] != _describe(folder / name):
            what = "was changed after it was made" if there else "is missing"
            raise DataError(f"{folder / name}, a shard of the store, {what}; put it back, or delete {folder}")


def _describe(path: Path) -> dict[str, Any]:
    with path.open("rb") as handle:
        return {"bytes": path.stat().st_size, "sha256": hashlib.file_digest(handle, "sha256").hexdigest()}


def _map(folder: Path, meta: dict[str, Any]) -> Columns:
    def array(name: str, dtype: str, shape: tuple[int, ...] = ()) -> npt.NDArray[Any]:
        # A plain view: slicing np.memmap itself costs several times more.
        values = np.memmap(folder / name, dtype=dtype, mode="r").view(np.ndarray)
        return values.reshape(-1, *shape) if shape else values

    def values(name: str, kind: Kind) -> Any:
        parts = [array(file, kind.dtype, kind.shape) for file in _values(name, _shards(meta))]
        return parts[0] if len(parts) == 1 else Shards(parts)

    try:
        columns = {
            name: Column(values(name, kind), array(f"{name}.offsets", "<i8"))
            for name, kind in _kinds(meta).items()
        }
    except OSError as error:
        raise StorageError(f"cannot map the store {folder}: {error.strerror}") from error
    return Columns(columns, meta["report"], folder)


def _build(
    folder: Path,
    key: str,
    kinds: Mapping[str, Kind],
    chunks: Callable[[dict[str, Any]], Iterable[Chunk]],
    shard: int,
) -> None:
    """New columns in `folder`. Whatever fails, what was there before is still there."""
    _refuse_foreign(folder)
    building = folder.with_name(folder.name + ".building")
    report: dict[str, Any] = {}
    try:
        shutil.rmtree(building, ignore_errors=True)  # left by a build that was killed
        building.mkdir(parents=True)
        shards = _write(building, kinds, chunks(report), shard)
        meta = {
            "format": _FORMAT,
            "fingerprint": key,
            "columns": {name: {"dtype": kind.dtype, "shape": kind.shape} for name, kind in kinds.items()},
            "files": {name: _describe(building / name) for name in _names(kinds, shards)},
            "report": report,
        } | ({"shards": shards} if shards > 1 else {})
        (building / _META).write_text(json.dumps(meta, indent=2) + "\n", encoding="utf-8")
        if folder.exists():
            shutil.rmtree(folder)
        building.rename(folder)
    except StorageError:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise StorageError(f"cannot write the store {folder}: {reason}; nothing was changed") from error
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _refuse_foreign(folder: Path) -> None:
    """A folder is replaced only if nothing but a store is in it."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; the store needs a folder there")
    foreign = [
        entry.name
        for entry in folder.glob("*")
        if entry.suffix not in (".bin", ".offsets", ".heads", ".json")
    ]
    if foreign:
        raise UsageError(
            f"{folder} holds {min(foreign)}, which is not part of a store; choose another folder"
        )


def _write(folder: Path, kinds: Mapping[str, Kind], chunks: Iterable[Chunk], shard: int) -> int:
    """Stream the examples into their columns; how many shards they became."""
    shards, held = 1, 0
    with ExitStack() as stack:
        writers = {name: stack.enter_context(_Writer(folder, name, kind)) for name, kind in kinds.items()}
        for chunk in chunks:
            if shard and held >= shard:
                for writer in writers.values():
                    writer.turn(shards)
                shards, held = shards + 1, 0
            for name, writer in writers.items():
                writer.add(chunk[name])
            held += len(chunk[name])
    return shards


class _Writer:
    """Appends rows to the two files of one column."""

    def __init__(self, folder: Path, name: str, kind: Kind) -> None:
        self.folder, self.name, self.kind, self.total = folder, name, kind, 0
        self.values = (folder / f"{name}.bin").open("wb")
        self.offsets = (folder / f"{name}.offsets").open("wb")

    def __enter__(self) -> "_Writer":
        self.offsets.write(np.zeros(1, "<i8").tobytes())
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.values.close()
        finally:
            self.offsets.close()

    def turn(self, number: int) -> None:
        """What comes now goes into another shard."""
        self.values.close()
        self.values = (self.folder / f"{self.name}.{number}.bin").open("wb")

    def add(self, rows: Sequence[Any]) -> None:
        lengths = np.fromiter(map(len, rows), "<i8", len(rows))
        self.offsets.write((self.total + np.cumsum(lengths)).astype("<i8").tobytes())
        for content in self._contents(rows, int(lengths.sum())):
            self.values.write(content)
        self.total += int(lengths.sum())

    def _contents(self, rows: Sequence[Any], count: int) -> Iterator[bytes]:
        if self.kind.shape or all(isinstance(row, np.ndarray) for row in rows):
            yield from (np.ascontiguousarray(row, self.kind.dtype).tobytes() for row in rows)
        else:
            yield np.fromiter(chain.from_iterable(rows), self.kind.dtype, count).tobytes()


def held_out(
    contents: Iterable[bytes], most: int, share: int
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Rows to train on, and rows to measure on: at most so many of them, and at most one in `share`.

    The choice follows a hash of what is in a row, so that every copy of a held-out one leaves training and
    the same one is held out wherever it stands. Too few rows to spare: none is.
    """
    hashes = np.fromiter((zlib.crc32(content) for content in contents), np.uint32)
    distinct, first = np.unique(hashes, return_index=True)
    count = min(most, len(distinct) // share)
    held = np.isin(hashes, distinct[:count])
    return np.flatnonzero(~held), np.sort(first[:count]).astype(np.int64)
