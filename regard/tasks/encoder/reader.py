"""Texts through an encoder: cut into ids, read together, and back in their order.

A text is read as begin + ids + end. One that is longer than the model has places for is cut, and counted; or
refused, where that is asked for. What comes back is a vector a text (`pooled`) or what some of its places
have become (`picked`). The engine reads where there is one (`load.py`), else the model itself, in batches of
like length. Results do not depend on the neighbours. Used by `embed`, `masked`, `classify` and `tag`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

import torch
from torch import Tensor

from regard.attention.record import running_tape
from regard.attention.switch import any_off
from regard.data.inputs import Tokens, pad_sources
from regard.errors import DataError
from regard.layers.pooling import pool
from regard.tasks.itself import ShowsItself
from regard.text.tokenizer import Tokenizer

R = TypeVar("R")
Row = Sequence[int]
Rows = Sequence[Row]

WINDOW = 4096  # texts that are sorted together
BATCH_TOKENS = 2048  # padded tokens of a batch
FRAME = 2  # begin and end


class Reader:
    """An encoder with its tokenizer."""

    def __init__(
        self, body: Any, tokenizer: Tokenizer, *, max_length: int = 0, refuses: bool = False
    ) -> None:
        """`max_length` tokens are read at most, begin and end with them; 0: all it has places for."""
        self.body, self.tokenizer, self.refuses = body, tokenizer, refuses
        self.engine: Any = None  # reads in the model's place where it can: see `load.py`
        self.note = ""  # why it does not
        bounds = [bound for bound in (max_length, body.max_length) if bound]
        self.longest: int | None = min(bounds, default=None)
        self.cut = 0  # texts that were not read to their end
        self._met = 0

    def rows(self, texts: Sequence[str]) -> list[list[int]]:
        """The ids of texts as the encoder reads them."""
        return [self.framed(ids) for ids in self.tokenizer.encode_batch(texts)]

    def framed(self, ids: Row) -> list[int]:
        """begin + ids + end, cut where the positions end."""
        self._met += 1
        room = len(ids) if self.longest is None else max(0, self.longest - FRAME)
        if len(ids) > room:
            if self.refuses:
                raise DataError(
                    f"text {self._met:,} has {len(ids) + FRAME:,} tokens and the model reads "
                    f"{self.longest:,}; shorten it, or let it be cut (--overflow cut)"
                )
            self.cut += 1
        return [self.tokenizer.begin_id, *ids[:room], self.tokenizer.end_id]

    def stream(self, texts: Iterable[str], work: Callable[[list[list[int]]], Iterable[R]]) -> Iterator[R]:
        """What `work` makes of the ids of each text, in their order, a window of them at a time."""
        left = iter(texts)
        while window := list(islice(left, WINDOW)):
            yield from work(self.rows(window))

    @torch.inference_mode()
    def pooled(self, rows: Rows, pooling: str, *, threads: int = 0) -> Tensor:
        """A vector for each row (N, D); `threads` of the engine at most, 0: its own."""
        if (engine := self._engine()) is not None:
            return engine.pooled(rows, pooling, threads=threads)  # type: ignore[no-any-return]
        out = torch.empty(len(rows), self.width, device=self.device)
        for numbers, inputs in self.batches(rows):
            out[numbers] = pool(self.body.encode(inputs), inputs.real, pooling).float()
        return out

    @torch.inference_mode()
    def picked(self, rows: Rows, places: Rows, *, threads: int = 0) -> Tensor:
        """What the named places of each row have become (P, D), row after row."""
        if (engine := self._engine()) is not None:
            return engine.picked(rows, places, threads=threads)  # type: ignore[no-any-return]
        found: dict[int, Tensor] = {}
        for numbers, inputs in self.batches(rows):
            hidden = self.body.encode(inputs).float()
            found |= {number: hidden[row, list(places[number])] for row, number in enumerate(numbers)}
        nothing = torch.empty(0, self.width, device=self.device)
        return torch.cat([nothing, *(found[number] for number in range(len(rows)))])

    @property
    def width(self) -> int:
        """Numbers in a vector."""
        return int(self.body.output_weight.shape[1])

    @property
    def device(self) -> torch.device:
        """Where the model is."""
        device: torch.device = self.body.output_weight.device
        return device

    def _engine(self) -> Any:
        """The engine, if it can do what is asked here: it shows no attention and switches no heads off."""
        return None if running_tape() is not None or any_off() else self.engine

    def batches(self, rows: Rows) -> Iterator[tuple[list[int], Tokens]]:
        """The rows side by side, those of like length together."""
        for numbers in batches([len(row) for row in rows]):
            some = [rows[number] for number in numbers]
            yield numbers, pad_sources(some, pad_id=self.tokenizer.pad_id).to(self.device)


class Reads(ShowsItself):
    """Base of what is made of a folder of these tasks: it reads texts, and what it reads can be looked at."""

    task = ""
    reader: Reader

    @property
    def tokenizer(self) -> Tokenizer:
        """Text to ids and back."""
        return self.reader.tokenizer

    def row(self, text: str) -> list[int]:
        """The ids of a text as they are read."""
        return self.reader.rows([text])[0]

    def told(self, text: str) -> str:
        """What it makes of a text, in words; nothing, where that is numbers."""
        return ""

    def contextual(self, text: str) -> tuple[list[int], Tensor]:
        """The ids of a text and the vectors (S, D) that the encoder gives them, by all that stands around."""
        ids = self.row(text)
        with torch.inference_mode():
            device = self.reader.body.output_weight.device
            return ids, self.reader.body.encode(Tokens(torch.tensor([ids], device=device)))[0].float().cpu()


def batches(lengths: Sequence[int], tokens: int = BATCH_TOKENS) -> Iterator[list[int]]:
    """Numbers of rows, those of like length together; rows times the longest are `tokens` at most.

    >>> list(batches([3, 9, 3, 8], 18))
    [[0, 2], [3, 1]]
    """
    batch: list[int] = []
    for number in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and (len(batch) + 1) * lengths[number] > tokens:
            yield batch
            batch = []
        batch.append(number)
    if batch:
        yield batch
