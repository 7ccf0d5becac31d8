"""The token store: every kept pair as ids on disk, tokenised once, memory-mapped, reused.

A folder with `src.bin`, `tgt.bin` (all ids end to end), `src.offsets`, `tgt.offsets` (int64, where
each sentence starts) and `meta.json` (fingerprint, sizes, hashes, counts); with parses also `src.heads`
(the head of each source token, see `parses.py`). It is built beside its place and renamed into it. Comes
after `filter.py`; `sampler.py` and `batch.py` read it.
"""

import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from regard.config import DataConfig
from regard.data.corpus import Corpus
from regard.data.filter import REASONS, Encoder, Judged, judge
from regard.data.parses import token_heads
from regard.errors import DataError, StorageError, UsageError

_FORMAT = 1
_META = "meta.json"
_ARRAYS = ("src.bin", "src.offsets", "tgt.bin", "tgt.offsets")
_HEADS = "src.heads"


@dataclass(frozen=True)
class StoreReport:
    """What went in: pairs read, kept, left out by reason, and tokens kept on each side."""

    pairs: int
    kept: int
    left_out: dict[str, int]
    src_tokens: int
    tgt_tokens: int

    def summary(self) -> str:
        """One line for people.

        >>> StoreReport(5, 3, {"empty": 2, "ratio": 0}, 40, 44).summary()
        '3 of 5 pairs (2 empty), 40 source and 44 target tokens'
        """
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.left_out.items() if count)
        left_out = f" ({reasons})" if reasons else ""
        tokens = f"{self.src_tokens:,} source and {self.tgt_tokens:,} target tokens"
        return f"{self.kept:,} of {self.pairs:,} pairs{left_out}, {tokens}"


class Side:
    """All sentences of one language: `ids` end to end, `offsets` (N + 1,) between them.

    `heads`, where there are parses, has one number for each id.
    """

    def __init__(
        self, ids: npt.NDArray[Any], offsets: npt.NDArray[np.int64], heads: npt.NDArray[Any] | None = None
    ) -> None:
        self.ids, self.offsets, self.heads = ids, offsets, heads
        self.lengths: npt.NDArray[np.int32] = (np.diff(offsets) + 1).astype(np.int32)

    def sentence(self, index: int) -> npt.NDArray[Any]:
        """The ids of one sentence, without special tokens."""
        return self.ids[self.offsets[index] : self.offsets[index + 1]]

    def padded(self, indices: npt.NDArray[Any], *, end_id: int, pad_id: int) -> npt.NDArray[np.int64]:
        """Sentences as rows (B, L), each closed by `end_id` and filled up with `pad_id`."""
        rows, columns, lengths = self._rows(self.ids, indices)
        rows[columns >= lengths] = pad_id
        rows[columns == lengths - 1] = end_id
        return rows

    def padded_heads(self, indices: npt.NDArray[Any]) -> npt.NDArray[np.int64] | None:
        """Their heads (B, L) as `Trees.of` takes them; None without parses."""
        if self.heads is None:
            return None
        rows, columns, lengths = self._rows(self.heads, indices)
        rows[columns >= lengths - 1] = rows.shape[1]
        return rows

    def _rows(
        self, numbers: npt.NDArray[Any], indices: npt.NDArray[Any]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int32]]:
        """Rows (B, L) of numbers, the last of each to be overwritten; columns (L,); lengths (B, 1)."""
        lengths = self.lengths[indices][:, None]
        columns = np.arange(lengths.max())
        # Places past a sentence read on into the next one and are overwritten; the last must not.
        places = np.minimum(self.offsets[indices][:, None] + columns, len(numbers) - 1)  # (B, L)
        return numbers[places].astype(np.int64), columns, lengths


@dataclass(frozen=True)
class Store:
    """The kept pairs, numbered from 0. Lengths count the end (or begin) token that a model is fed."""

    src: Side
    tgt: Side
    report: StoreReport
    folder: Path

    def __len__(self) -> int:
        return len(self.src.lengths)

    @property
    def src_lengths(self) -> npt.NDArray[np.int32]:
        """Source lengths (N,), end token included."""
        return self.src.lengths

    @property
    def tgt_lengths(self) -> npt.NDArray[np.int32]:
        """Target lengths (N,), begin or end token included."""
        return self.tgt.lengths

    def pair(self, index: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """The ids of pair `index`, without special tokens."""
        return self.src.sentence(index), self.tgt.sentence(index)


def open_store(corpus: Corpus, tokenizer: Encoder, data_config: DataConfig, folder: Path) -> Store:
    """The store of these pairs in `folder`: reused if it is whole and its inputs are the same, else built.

    One builder a folder at a time. Memory stays constant however long the corpus is.
    """
    key = _fingerprint(corpus, tokenizer, data_config)
    meta = _reusable(folder, key)
    if meta is None:
        _build(corpus, tokenizer, data_config, folder, key)
        meta = _read_meta(folder)
        assert meta is not None
    return _map(folder, meta)


def reopen_store(folder: Path) -> Store | None:
    """The store that lies in `folder`, whatever it was made from; None if there is none that is whole."""
    meta = _read_meta(folder)
    if meta is None or meta.get("format") != _FORMAT:
        return None
    whole = _reusable(folder, str(meta.get("fingerprint")))
    return None if whole is None else _map(folder, whole)


def _fingerprint(corpus: Corpus, tokenizer: Encoder, rules: DataConfig) -> str:
    """One hash over everything that the content of a store depends on."""
    vocabulary = hashlib.sha256(tokenizer.to_json().encode()).hexdigest()
    inputs = [_FORMAT, corpus.fingerprint(), vocabulary, asdict(rules)]
    return hashlib.sha256(json.dumps(inputs, sort_keys=True).encode()).hexdigest()


def _read_meta(folder: Path) -> dict[str, Any] | None:
    try:
        meta = json.loads((folder / _META).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return meta if isinstance(meta, dict) else None


def _reusable(folder: Path, key: str) -> dict[str, Any] | None:
    """The meta of a store that was made from the same inputs and is whole; None asks for a new one."""
    meta = _read_meta(folder)
    if meta is None or meta.get("fingerprint") != key:
        return None
    try:
        names = (*_ARRAYS, _HEADS) if _HEADS in meta["files"] else _ARRAYS
        whole = all(meta["files"][name] == _describe(folder / name) for name in names)
    except (OSError, KeyError, TypeError):
        return None
    return meta if whole else None


def _describe(path: Path) -> dict[str, Any]:
    with path.open("rb") as handle:
        return {"bytes": path.stat().st_size, "sha256": hashlib.file_digest(handle, "sha256").hexdigest()}


def _map(folder: Path, meta: dict[str, Any]) -> Store:
    def array(name: str, dtype: str) -> npt.NDArray[Any]:
        # A plain view: slicing np.memmap itself costs several times more.
        return np.memmap(folder / name, dtype=dtype, mode="r").view(np.ndarray)

    try:
        heads = array(_HEADS, "<u4") if _HEADS in meta["files"] else None
        src, tgt = (
            Side(array(f"{side}.bin", meta["dtype"]), array(f"{side}.offsets", "<i8"), own)
            for side, own in (("src", heads), ("tgt", None))
        )
    except OSError as error:
        raise StorageError(f"cannot map the token store {folder}: {error.strerror}") from error
    return Store(src, tgt, StoreReport(**meta["report"]), folder)


def _build(corpus: Corpus, tokenizer: Encoder, rules: DataConfig, folder: Path, key: str) -> None:
    """A new store in `folder`. Whatever fails, what was there before is still there."""
    _refuse_foreign(folder)
    building = folder.with_name(folder.name + ".building")
    try:
        shutil.rmtree(building, ignore_errors=True)  # left by a build that was killed
        building.mkdir(parents=True)
        sizes = tokenizer.vocab_size, tokenizer.target_vocab_size
        dtype = "<u2" if max(sizes) <= 1 << 16 else "<u4"
        judged = judge(corpus.pairs(), tokenizer, rules)
        if corpus.parses:
            judged = _writing_heads(judged, tokenizer, building / _HEADS)
        report = _write_arrays(judged, building, dtype)
        names = (*_ARRAYS, _HEADS) if corpus.parses else _ARRAYS
        files = {name: _describe(building / name) for name in names}
        meta = {
            "format": _FORMAT,
            "fingerprint": key,
            "dtype": dtype,
            "files": files,
            "report": asdict(report),
        }
        (building / _META).write_text(json.dumps(meta, indent=2) + "\n", encoding="utf-8")
        if folder.exists():
            shutil.rmtree(folder)
        building.rename(folder)
    except StorageError:
        raise
    except OSError as error:
        reason = error.strerror or str(error)
        raise StorageError(f"cannot write the token store {folder}: {reason}; nothing was changed") from error
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _refuse_foreign(folder: Path) -> None:
    """A folder is replaced only if nothing but a store is in it."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; the token store needs a folder there")
    foreign = [entry.name for entry in folder.glob("*") if entry.name not in (*_ARRAYS, _HEADS, _META)]
    if foreign:
        raise UsageError(
            f"{folder} holds {min(foreign)}, which is not part of a token store; choose another folder"
        )


def _writing_heads(chunks: Iterable[list[Judged]], tokenizer: Encoder, path: Path) -> Iterator[list[Judged]]:
    """The chunks as they are; on the way, the heads of the source tokens of kept pairs go to a file."""
    with path.open("wb") as file:
        for chunk in chunks:
            for judged in chunk:
                if not judged.reason:
                    tokens = [tokenizer.token(number) for number in judged.src]
                    heads = token_heads(judged.pair.parse, judged.pair.src, tokens)
                    file.write(np.array(heads, "<u4").tobytes())
            yield chunk


def _write_arrays(chunks: Iterable[list[Judged]], folder: Path, dtype: str) -> StoreReport:
    """Stream the kept pairs into the four arrays; DataError if none is kept."""
    left_out = dict.fromkeys(REASONS, 0)
    pairs = 0
    with ExitStack() as stack:
        src, tgt = (stack.enter_context(_SideWriter(folder, side, dtype)) for side in ("src", "tgt"))
        for chunk in chunks:
            pairs += len(chunk)
            for judged in chunk:
                if judged.reason:
                    left_out[judged.reason] += 1
            kept = [judged for judged in chunk if not judged.reason]
            src.add([judged.src for judged in kept])
            tgt.add([judged.tgt for judged in kept])
    if not src.sentences:
        counts = ", ".join(f"{count:,} {reason}" for reason, count in left_out.items() if count)
        raise DataError(f"no pair of {pairs:,} can be trained on ({counts or 'no lines'}); see regard check")
    return StoreReport(pairs, src.sentences, left_out, src.tokens, tgt.tokens)


class _SideWriter:
    """Appends sentences to the two files of one side."""

    def __init__(self, folder: Path, side: str, dtype: str) -> None:
        self.dtype, self.sentences, self.tokens = dtype, 0, 0
        self.ids = (folder / f"{side}.bin").open("wb")
        self.offsets = (folder / f"{side}.offsets").open("wb")

    def __enter__(self) -> "_SideWriter":
        self.offsets.write(np.zeros(1, "<i8").tobytes())
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self.ids.close()
        finally:
            self.offsets.close()

    def add(self, sentences: list[list[int]]) -> None:
        lengths = np.fromiter(map(len, sentences), "<i8", len(sentences))
        self.offsets.write((self.tokens + np.cumsum(lengths)).astype("<i8").tobytes())
        self.ids.write(np.fromiter(chain.from_iterable(sentences), self.dtype, int(lengths.sum())).tobytes())
        self.sentences += len(sentences)
        self.tokens += int(lengths.sum())
