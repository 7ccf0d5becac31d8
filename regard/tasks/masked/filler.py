"""Gaps filled: for each [MASK] of a text, the tokens that may stand there, likeliest first.

All gaps are filled at once, each as if the others stayed open. Before this file: the reader of
`regard.tasks.encoder`; after it: `regard fill`.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from torch import Tensor

from regard.data.inputs import Tokens
from regard.errors import DataError, UsageError, shown
from regard.tasks.encoder.reader import Reader
from regard.text.tokenizer import Tokenizer

MASK = "[MASK]"


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


class Filler:
    """A model with its tokenizer; `regard.load` makes one from a folder."""

    task = "masked"

    def __init__(self, model: Any, tokenizer: Tokenizer, *, max_length: int = 0) -> None:
        self.model, self.tokenizer = model.eval(), tokenizer
        self.reader = Reader(model, tokenizer, max_length=max_length, refuses=True)

    @property
    def choices(self) -> int:
        """Tokens that stand for text."""
        return self.tokenizer.vocab_size - len(self.tokenizer.specials.never)

    def fill(self, texts: Sequence[str], *, top: int = 5) -> list[Filled]:
        """Each text with its gaps filled, and `top` guesses for each gap."""
        if not 1 <= top <= self.choices:
            raise UsageError(
                f"top ({top}) must be between 1 and {self.choices}, the tokens that stand for text"
            )
        rows = [self.reader.framed(self.ids(text)) for text in texts]

        def work(hidden: Tensor, inputs: Tokens, numbers: Sequence[int]) -> list[Filled]:
            return [
                self._filled(texts[number], rows[number], hidden[place], top)
                for place, number in enumerate(numbers)
            ]

        return self.reader.over(rows, work)

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

    def _filled(self, text: str, row: Sequence[int], hidden: Tensor, top: int) -> Filled:
        """One text from its hidden states (S, D)."""
        places = [place for place, number in enumerate(row) if number == self.tokenizer.mask_id]
        logits = self.model.project(hidden[places]).float()  # (gaps, V)
        logits[:, list(self.tokenizer.specials.never)] = float("-inf")
        logits[:, self.tokenizer.vocab_size :] = float("-inf")
        best = logits.softmax(-1).topk(top, dim=-1)
        gaps = [
            [
                Guess(self._word(number), probability)
                for number, probability in zip(numbers, values, strict=True)
            ]
            for numbers, values in zip(best.indices.tolist(), best.values.tolist(), strict=True)
        ]
        for gap in gaps:
            text = text.replace(MASK, gap[0].text, 1)
        return Filled(text, gaps)

    def _word(self, number: int) -> str:
        text = self.tokenizer.spell([number]).decode("utf-8", "replace")
        return text.strip() or text  # a line break may be what stands there


__all__ = ["MASK", "Filled", "Filler", "Guess"]
