"""Documents as tokens on disk, end to end, and the rows that they are cut into: no token is lost.

    d o c 1 </s> d o c 2 </s> ...    each document closes with the end token
    |  row  |  row  |  row  |  r     rows of one length, the first and the last of an epoch shorter

Where the first row ends changes with the epoch, so that a token is not always met at the same place of a row.
Which rows are in a batch is a pure function of (seed, epoch, position). Before this file: `texts.py`; after
it: the feed of a task that learns from running text.
"""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from regard.data.columns import Chunk, Columns, Kind, open_columns
from regard.data.texts import Document, parts
from regard.errors import UsageError

Ids = npt.NDArray[np.integer]
Spans = npt.NDArray[np.int64]  # (B, 2): where rows begin and end among all tokens
B = TypeVar("B")
IDS = "ids"


class Encoder(Protocol):
    """What is asked of a tokenizer."""

    @property
    def end_id(self) -> int: ...
    @property
    def vocab_size(self) -> int: ...
    def encode(self, text: str) -> list[int]: ...
    def to_json(self) -> str: ...


def open_tokens(documents: Sequence[Document], tokenizer: Encoder, folder: Path) -> Columns:
    """The tokens of documents in `folder`, in one column: reused if it is whole and of the same text.

    `["ids"].values` are all of them, end to end; the report counts `documents`, `tokens` and `bytes` of text.
    """
    vocabulary = hashlib.sha256(tokenizer.to_json().encode()).hexdigest()
    inputs = [[each.digest, each.begin, each.end] for each in documents]
    kind = Kind("<u2" if tokenizer.vocab_size <= 1 << 16 else "<u4")

    def chunks(report: dict[str, Any]) -> Iterator[Chunk]:
        tokens = size = 0
        for part in parts(documents):
            ids = tokenizer.encode(part.text) + ([tokenizer.end_id] if part.last else [])
            tokens, size = tokens + len(ids), size + len(part.text.encode())
            yield {IDS: [ids]}
        report |= {"documents": len(documents), "tokens": tokens, "bytes": size}

    return open_columns(folder, ["rows", vocabulary, *inputs], {IDS: kind}, chunks)


class RowFeed(Generic[B]):
    """Batches of rows, each made by `make` of the spans (B, 2) that its rows are."""

    def __init__(
        self,
        total: int,
        length: int,
        make: Callable[[Spans], B],
        *,
        batch_tokens: int,
        seed: int,
    ) -> None:
        """`total` tokens in rows of `length`."""
        if total < 1:
            raise UsageError("no tokens to make rows of")
        self.total, self.length, self.make, self.seed = total, length, make, seed
        self.rows = max(1, batch_tokens // length)  # in a batch
        self._epoch, self._plan = 0, self.spans(0)

    def spans(self, epoch: int) -> Spans:
        """All rows of an epoch (N, 2) in the order of its batches; together every token once."""
        # Raw bits, whose stream numpy promises never to change.
        random = np.random.Philox(np.random.SeedSequence([self.seed, epoch]))
        found = cut_rows(self.total, self.length, shift=int(random.random_raw()) % self.length)
        return found[np.argsort(random.random_raw(len(found)), kind="stable")]

    def _of(self, epoch: int) -> Spans:
        """The rows of an epoch; the last ones asked for are remembered."""
        if epoch != self._epoch:
            self._epoch, self._plan = epoch, self.spans(epoch)
        return self._plan

    def count(self, epoch: int) -> int:
        """How many batches `epoch` has."""
        return -(-len(self._of(epoch)) // self.rows)

    def batch(self, epoch: int, position: int) -> B:
        """One batch."""
        return self.make(self._of(epoch)[position * self.rows : (position + 1) * self.rows])


def cut_rows(total: int, length: int, *, shift: int = 0) -> Spans:
    """Rows (N, 2) of `total` tokens in their order, the first of `shift` tokens if that is not 0.

    >>> cut_rows(7, 3, shift=2).tolist()
    [[0, 2], [2, 5], [5, 7]]
    """
    starts = np.arange(shift - length if shift else 0, total, length, dtype=np.int64)
    return np.stack([np.maximum(starts, 0), np.minimum(starts + length, total)], 1)


def gather(ids: Ids, spans: Spans, *, fill: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]:
    """Rows (B, L) of ids, filled up at their ends, and where they are real (B, L)."""
    places = spans[:, :1] + np.arange(int((spans[:, 1] - spans[:, 0]).max()))  # (B, L)
    real = places < spans[:, 1:]
    rows = ids[np.minimum(places, len(ids) - 1)].astype(np.int64)
    rows[~real] = fill
    return rows, real
