"""Lines in windows and batches: what is read ahead, what of it can be translated, and what goes together.

Before this file: whoever hands lines over; after it: `translator.py`.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from regard.data.filter import CHARACTERS_A_TOKEN
from regard.errors import DataError
from regard.text.normalise import normalise

CHARACTERS = 2**22  # after so many no more lines are read ahead
ROW = 128  # source tokens; a batch of longer lines holds fewer of them, so that memory is bounded


def windows(lines: Iterable[str], size: int) -> Iterator[tuple[list[str], Exception | None]]:
    """Lines in lists of `size`, fewer of long ones; where reading fails, what came before it, and why."""
    source = iter(lines)
    while True:
        texts: list[str] = []
        fault: Exception | None = None
        try:
            characters = 0
            for text in islice(source, size):
                texts.append(text)
                characters += len(text)
                if characters > CHARACTERS:
                    break
        except Exception as error:
            fault = error
        if not texts and fault is None:
            return
        yield texts, fault


def readable(
    texts: list[str], fault: Exception | None, limit: int, read: int
) -> tuple[list[str], Exception | None]:
    """The texts before the first that no vocabulary could make `limit` tokens of, and what is wrong with it.

    A line of megabytes would cost a hundred times as much to tokenise, only to be refused.
    """
    most = CHARACTERS_A_TOKEN * limit
    for number, text in enumerate(texts):
        if len(text) > most and len(normalise(text)) > most:
            return texts[:number], DataError(
                f"line {read + number + 1} has {len(text):,} characters, and this model takes {limit} tokens "
                "(decode.max_source, or its positions); split the line"
            )
    return texts, fault


def fitting(sources: Sequence[Sequence[int]], limit: int) -> int:
    """How many sources come before the first that, with its end, is longer than the limit."""
    return next((i for i, ids in enumerate(sources) if len(ids) + 1 > limit), len(sources))


def batches(sources: Sequence[Sequence[int]], batch_size: int) -> Iterator[list[int]]:
    """Numbers of the sources that hold something, shortest first, in batches of bounded size."""
    batch: list[int] = []
    for i in sorted((i for i, ids in enumerate(sources) if ids), key=lambda i: len(sources[i])):
        if batch and (len(batch) == batch_size or (len(batch) + 1) * len(sources[i]) > batch_size * ROW):
            yield batch
            batch = []
        batch.append(i)
    if batch:
        yield batch
