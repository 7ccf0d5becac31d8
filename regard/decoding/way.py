"""How a model is written with: the way that it names itself, and what a call may ask of it.

A model says `way = "module:NAME"`; one that says nothing is asked for one token after the other (`STEPS`:
greedy, beam, draws). `maskpredict.py` and `ctc.py` write all places at once, `blockwise.py` several. Whoever
translates asks the way and never which model it is.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol

import torch
from torch import Tensor

from regard.config import DecodeConfig
from regard.decoding.beam import beam_search
from regard.decoding.greedy import greedy, likeliest
from regard.decoding.sampling import Sampling, sample
from regard.decoding.search import Hypothesis, Rules, write
from regard.errors import UsageError
from regard.text.tokenizer import Tokenizer

LONGEST = 100_000  # tokens or characters that may be asked for


@dataclass(frozen=True)
class Spelling:
    """How many characters each token writes (V,), and how many of them fall away where it comes first."""

    characters: Tensor
    leading: Tensor

    @classmethod
    def of(cls, tokenizer: Tokenizer, width: int) -> "Spelling":
        """That of `width` tokens, of which the tokenizer knows the first; a space falls away."""
        spelled = [tokenizer.spell([number]) for number in range(tokenizer.target_vocab_size)]
        texts = [each.decode("utf-8", "replace") for each in spelled]
        characters, leading = torch.zeros(width, dtype=torch.int64), torch.zeros(width, dtype=torch.int64)
        characters[: len(texts)] = torch.tensor([len(text) for text in texts])
        leading[: len(texts)] = torch.tensor([int(text.startswith(" ")) for text in texts])
        return cls(characters, leading)

    def count(self, ids: list[int]) -> int:
        """Of an output."""
        if not ids:
            return 0
        return int(self.characters[ids].sum() - self.leading[ids[0]])


@dataclass(frozen=True)
class Wanted:
    """What a call asks of a search, beside the rules that outputs keep."""

    decode: DecodeConfig
    n_best: int = 1
    sampling: Sampling | None = None
    length: int | None = None  # tokens, exactly
    max_chars: int | None = None  # characters at most
    spelling: Spelling | None = None  # which it takes to count them
    late: Callable[[], None] | None = None  # called between steps; may raise
    every: bool = False  # all that is found, not the best of it alone: somebody else chooses

    def __post_init__(self) -> None:
        for name in ("length", "max_chars"):
            value = getattr(self, name)
            if value is not None and not 1 <= value <= LONGEST:
                raise UsageError(f"{name} ({value}) must be at least 1 and at most {LONGEST}")

    @property
    def outputs(self) -> int:
        """How many outputs a beam is asked for."""
        return max(self.n_best, self.decode.beam) if self.every else self.n_best

    @property
    def bounded(self) -> bool:
        """Whether a length was asked for."""
        return self.length is not None or self.max_chars is not None

    def check_time(self) -> None:
        """Give up if it is too late."""
        if self.late is not None:
            self.late()


class Way(Protocol):
    """A way to write with a model."""

    refines: bool  # several lengths are tried, and what was written is written again

    def check(self, wanted: Wanted) -> None:
        """Refuse what it cannot do, before anything is read."""
        ...

    def search(self, model: Any, inputs: Any, rules: Rules, wanted: Wanted) -> list[list[Hypothesis]]:
        """Up to `n_best` outputs for each row of the inputs, best first."""
        ...


class Steps:
    """One token after the other."""

    refines = False

    def check(self, wanted: Wanted) -> None:
        """Lengths are not in its hands."""
        if wanted.bounded:
            flag = "length" if wanted.length is not None else "max_chars"
            raise UsageError(
                f"{flag} ({getattr(wanted, flag)}) is kept by models that write all at once "
                "(model.kind=parallel or ctc); this one writes token by token"
            )
        if wanted.sampling is None:
            check_beam(wanted)

    def search(self, model: Any, inputs: Any, rules: Rules, wanted: Wanted) -> list[list[Hypothesis]]:
        """Drawn, greedy or by a beam."""
        if wanted.sampling is not None:
            return sample(model, inputs, rules, sampling=wanted.sampling, draws=wanted.n_best)
        if wanted.decode.beam > 1:
            return beam_search(model, inputs, rules, beam=wanted.decode.beam, n_best=wanted.outputs)
        if wanted.late is None:
            return [[each] for each in greedy(model, inputs, rules)]

        def in_time(logp: Tensor, step: int, rows: Tensor) -> Tensor:
            wanted.check_time()
            return likeliest(logp, step, rows)

        return [[each] for each in write(model, model.start(inputs), rules, in_time)]


STEPS = Steps()


def check_beam(wanted: Wanted) -> None:
    """As many outputs as there are places to find them in."""
    if wanted.n_best > wanted.decode.beam:
        raise UsageError(f"n_best ({wanted.n_best}) must be at most beam ({wanted.decode.beam})")


def refuse_draws(wanted: Wanted) -> None:
    """Refuse to draw token by token."""
    if wanted.sampling is not None:
        raise UsageError("words are drawn one after the other, and this model writes several at once")


def way_of(model: Any) -> Way:
    """The way that a model, or a kind of model, names."""
    name = getattr(model, "way", "")
    if not name:
        return STEPS
    module, _, attribute = name.partition(":")
    found: Way = getattr(import_module(module), attribute)
    return found


__all__ = ["STEPS", "Spelling", "Steps", "Wanted", "Way", "check_beam", "refuse_draws", "way_of"]
