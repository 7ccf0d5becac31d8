"""Texts through an encoder: cut into ids, sorted by length, side by side in batches, and back in their order.

A text is read as begin + ids + end. One that is longer than the model has places for is cut, and counted; or
refused, where that is asked for. Whoever uses it says what is made of the hidden states. Results do not
depend on the neighbours in a batch. Used by `embed`, `masked`, `classify` and `tag`.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

import torch
from torch import Tensor

from regard.data.inputs import Tokens, pad_sources
from regard.errors import DataError
from regard.text.tokenizer import Tokenizer

R = TypeVar("R")
Row = Sequence[int]
Work = Callable[[Tensor, Tokens, Sequence[int]], Iterable[R]]

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

    def stream(self, texts: Iterable[str], work: Work[R]) -> Iterator[R]:
        """What `work` makes of each text, in their order, a window of them at a time."""
        left = iter(texts)
        while window := list(islice(left, WINDOW)):
            yield from self.over(self.rows(window), work)

    def over(self, rows: Sequence[Row], work: Work[R]) -> list[R]:
        """What `work` makes of rows: of (hidden (B, S, D), inputs, which rows they are) a result for each."""
        found: dict[int, R] = {}
        device = self.body.output_weight.device
        with torch.inference_mode():
            for numbers in batches([len(row) for row in rows]):
                inputs = pad_sources([rows[number] for number in numbers], pad_id=self.tokenizer.pad_id).to(
                    device
                )
                results = work(self.body.encode(inputs), inputs, numbers)
                found |= dict(zip(numbers, results, strict=True))
        return [found[number] for number in range(len(rows))]


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
