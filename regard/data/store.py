"""The token store of pairs: every kept one as ids on disk, tokenised once, reused.

Two columns (`columns.py`), `src` and `tgt`; with parses a third, `heads`: the head of each source token, see
`parses.py`. Comes after `filter.py`; `sampler.py` and `batch.py` read it.
"""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from regard.config import DataConfig
from regard.data.columns import Chunk, Columns, Kind, Shards, open_columns, reopen_columns
from regard.data.corpus import Corpus
from regard.data.filter import REASONS, Encoder, Judged, judge
from regard.data.parses import token_heads
from regard.errors import DataError

SHARD = 1_000_000  # pairs in a file, about


@dataclass(frozen=True)
class StoreReport:
    """What went in: pairs read, kept, left out by reason, and tokens kept on each side."""

    pairs: int
    kept: int
    left_out: dict[str, int]
    src_tokens: int
    tgt_tokens: int
    groups: dict[str, int] = field(default_factory=dict)  # of a mixture: kept of each, in order
    parts: list[int] = field(default_factory=list)  # kept of each file, where there are several

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
        self, ids: "npt.NDArray[Any] | Shards", offsets: npt.NDArray[np.int64], heads: Any = None
    ) -> None:
        self.ids, self.offsets, self.heads = ids, offsets, heads
        self.lengths: npt.NDArray[np.int32] = (np.diff(offsets) + 1).astype(np.int32)

    @property
    def largest(self) -> int:
        """The largest id."""
        return max(int(part.max()) for part in getattr(self.ids, "parts", [self.ids]))

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
        self, numbers: "npt.NDArray[Any] | Shards", indices: npt.NDArray[Any]
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

    def groups(self) -> dict[str, npt.NDArray[np.int64]]:
        """The rows of each group of a mixture, in order; of anything else, all of them under no name."""
        counts = self.report.groups or {"": len(self)}
        ends = np.cumsum(list(counts.values()))
        return {name: np.arange(end - counts[name], end) for name, end in zip(counts, ends, strict=True)}

    def pair(self, index: int) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """The ids of pair `index`, without special tokens."""
        return self.src.sentence(index), self.tgt.sentence(index)


def open_store(corpus: Corpus, tokenizer: Encoder, data_config: DataConfig, folder: Path) -> Store:
    """The store of these pairs in `folder`: reused if it is whole and its inputs are the same, else built.

    One builder a folder at a time. Memory stays constant however long the corpus is.
    """
    vocabulary = hashlib.sha256(tokenizer.to_json().encode()).hexdigest()
    sizes = tokenizer.vocab_size, tokenizer.target_vocab_size
    ids = Kind("<u2" if max(sizes) <= 1 << 16 else "<u4")
    kinds = {"src": ids, "tgt": ids} | ({"heads": Kind("<u4")} if corpus.parses else {})
    rules = {"max_length": data_config.max_length, "max_ratio": data_config.max_ratio}
    several = len(corpus.parts()) > 1
    inputs = corpus.fingerprint(), vocabulary, rules, *(["parts"] if several else [])

    def chunks(report: dict[str, Any]) -> Iterator[Chunk]:
        judged = judge(corpus.pairs(), tokenizer, data_config)
        return _kept(
            _counted(judged, report) if several else judged, tokenizer, report, trees="heads" in kinds
        )

    return _as_store(open_columns(folder, inputs, kinds, chunks, shard=SHARD))


def _counted(chunks: Iterable[list[Judged]], report: dict[str, Any]) -> Iterator[list[Judged]]:
    """The chunks, while those that are kept of each file are counted; a file begins with line 1."""
    parts: list[int] = []
    report["parts"] = parts
    for chunk in chunks:
        for judged in chunk:
            if judged.pair.line == 1:
                parts.append(0)
            parts[-1] += not judged.reason
        yield chunk


def reopen_store(folder: Path) -> Store | None:
    """The store that lies in `folder`, whatever it was made from; None if there is none that is whole."""
    held = reopen_columns(folder)
    return None if held is None or not {"src", "tgt"} <= held.columns.keys() else _as_store(held)


def _as_store(held: Columns) -> Store:
    heads = held["heads"].values if "heads" in held.columns else None
    src, tgt = (held[name] for name in ("src", "tgt"))
    sides = Side(src.values, src.offsets, heads), Side(tgt.values, tgt.offsets)
    return Store(*sides, StoreReport(**held.report), held.folder)


def _kept(
    chunks: Iterable[list[Judged]], tokenizer: Encoder, report: dict[str, Any], *, trees: bool
) -> Iterator[Chunk]:
    """The columns of the kept pairs, and the report of all; DataError if none is kept."""
    left_out = dict.fromkeys(REASONS, 0)
    pairs = count = src_tokens = tgt_tokens = 0
    groups: dict[str, int] = {}
    for chunk in chunks:
        pairs += len(chunk)
        for judged in chunk:
            if judged.reason:
                left_out[judged.reason] += 1
            elif judged.pair.group is not None:
                name = judged.pair.group.name
                groups[name] = groups.get(name, 0) + 1
        kept = [judged for judged in chunk if not judged.reason]
        count += len(kept)
        src_tokens += sum(len(judged.src) for judged in kept)
        tgt_tokens += sum(len(judged.tgt) for judged in kept)
        columns = {"src": [judged.src for judged in kept], "tgt": [judged.tgt for judged in kept]}
        yield columns | ({"heads": [_heads(judged, tokenizer) for judged in kept]} if trees else {})
    if not count:
        counts = ", ".join(f"{number:,} {reason}" for reason, number in left_out.items() if number)
        raise DataError(f"no pair of {pairs:,} can be trained on ({counts or 'no lines'}); see regard check")
    parts = report.get("parts", [])
    report |= asdict(StoreReport(pairs, count, left_out, src_tokens, tgt_tokens, groups, parts))


def _heads(judged: Judged, tokenizer: Encoder) -> list[int]:
    """The heads of the source tokens of a pair."""
    tokens = [tokenizer.token(number) for number in judged.src]
    return token_heads(judged.pair.parse, judged.pair.src, tokens)
