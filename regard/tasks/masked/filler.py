"""Gaps filled: for each [MASK] of a text, the tokens that may stand there, likeliest first.

All gaps are filled at once, each as if the others stayed open. Before this file: the reader of
`regard.tasks.encoder`; after it: `regard fill`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from typing import Any

import torch

from regard.errors import DataError, UsageError, shown
from regard.tasks.encoder.reader import Reader, Reads
from regard.text.tokenizer import Tokenizer

MASK = "[MASK]"
SOME = 256  # gaps whose logits are held at a time


@dataclass(frozen=True)
class Guess:
    """What may stand in a gap."""

    text: str
    probability: float


@dataclass(frozen=True)
class Filled:
    """A text with its gaps filled by what is likeliest, and for each gap its guesses."""

    text: str
    gaps: list[list[Guess]]

    def to_dict(self) -> dict[str, Any]:
        """As --json and the server say it."""
        return asdict(self)


class Filler(Reads):
    """A model with its tokenizer; `regard.load` makes one from a folder."""

    task = "masked"

    def __init__(self, model: Any, tokenizer: Tokenizer, *, max_length: int = 0) -> None:
        self.model = model.eval()
        self.reader = Reader(model, tokenizer, max_length=max_length, refuses=True)

    @property
    def choices(self) -> int:
        """Tokens that stand for text."""
        return self.tokenizer.vocab_size - len(self.tokenizer.specials.never)

    def fill(self, texts: Sequence[str], *, top: int = 5, threads: int = 0) -> list[Filled]:
        """Each text with its gaps filled, and `top` guesses for each gap."""
        if not 1 <= top <= self.choices:
            raise UsageError(
                f"top ({top}) must be between 1 and {self.choices}, the tokens that stand for text"
            )
        rows = [self.reader.framed(self.ids(text)) for text in texts]
        ahead, mask = self.model.ahead, self.tokenizer.mask_id
        gaps = [[place - ahead for place, number in enumerate(row) if number == mask] for row in rows]
        guesses = self._guesses(rows, gaps, top, threads)
        return [_filled(text, list(islice(guesses, len(own)))) for text, own in zip(texts, gaps, strict=True)]

    def row(self, text: str) -> list[int]:
        """The ids of a text as they are read; it need not have a gap."""
        return self.reader.framed(self.ids(text) if MASK in text else self.tokenizer.encode(text))

    def told(self, text: str) -> str:
        """The text, its gaps filled."""
        return self.fill([text], top=1)[0].text if MASK in text else text

    def ids(self, text: str) -> list[int]:
        """The ids of a text whose gaps are masks; the space before a gap belongs to what stands there."""
        parts = text.split(MASK)
        if len(parts) == 1:
            raise DataError(
                f"there is no {MASK} in {shown(text)}; write it where something is to be filled in"
            )
        ids = self.tokenizer.encode(parts[0].rstrip())
        for part in parts[1:]:
            ids += [self.tokenizer.mask_id, *self.tokenizer.encode(part.rstrip())]
        return ids

    @torch.inference_mode()
    def _guesses(
        self, rows: Sequence[list[int]], gaps: Sequence[list[int]], top: int, threads: int
    ) -> Iterator[list[Guess]]:
        """Those of each gap, text after text."""
        found = []
        for hidden in torch.split(self.reader.picked(rows, gaps, threads=threads), SOME):
            logits = self.model.project(hidden).float()  # (gaps, V)
            logits[:, list(self.tokenizer.specials.never)] = float("-inf")
            logits[:, self.tokenizer.vocab_size :] = float("-inf")
            best = logits.softmax(-1).topk(top, dim=-1)
            for numbers, values in zip(best.indices.tolist(), best.values.tolist(), strict=True):
                words = map(self._word, numbers)
                found.append([Guess(word, value) for word, value in zip(words, values, strict=True)])
        return iter(found)

    def _word(self, number: int) -> str:
        text = self.tokenizer.spell([number]).decode("utf-8", "replace")
        return text.strip() or text  # a line break may be what stands there


def _filled(text: str, gaps: list[list[Guess]]) -> Filled:
    for gap in gaps:
        text = text.replace(MASK, gap[0].text, 1)
    return Filled(text, gaps)


__all__ = ["MASK", "Filled", "Filler", "Guess"]
