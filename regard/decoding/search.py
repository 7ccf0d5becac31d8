"""What every search shares: the rules an output keeps, and writing one token a row until all are done.

    most  = max_extra + max_ratio · source length, tokens with the end; never beyond the model's positions
    least = min_ratio · source length, tokens before the end
    score = log p / length ** penalty, the end counted

An output that reaches `most` without ending is cut there and marked. `greedy.py` and `sampling.py` give
`write` their way of choosing; who wants each token as it comes takes `walk`, or steps a `Walk` itself;
`beam.py` has its own loop.
Before this file: `regard.models.protocol`.
"""

import math
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from regard.config import DecodeConfig
from regard.errors import ModelError
from regard.models.protocol import Stepper, StepState
from regard.text.tokenizer import OUR_SPECIALS, Specials

S = TypeVar("S", bound=StepState)
Choose = Callable[[Tensor, int, Tensor], Tensor]  # log p (R, V), tokens written, rows (R,) -> ids (R,)


@dataclass(frozen=True)
class Hypothesis:
    """One output: its ids without specials, its score, and whether it was cut before its end."""

    ids: list[int]
    score: float
    truncated: bool

    @property
    def length(self) -> int:
        """Tokens that were written, the end counted if it came."""
        return len(self.ids) + (not self.truncated)


@dataclass(frozen=True)
class Rules:
    """What the outputs of a batch must keep to."""

    least: Tensor  # (B,) tokens before the end may come
    most: Tensor  # (B,) tokens, the end counted
    penalty: float = 1.0
    vocab_size: int | None = None  # ids from here on are padding of the vocabulary
    specials: Specials = OUR_SPECIALS
    first: Tensor | None = None  # (B,) what each row goes on from: the last token of a prompt; None: begin

    def beginning(self) -> Tensor:
        """The id (B,) that each row reads first."""
        return torch.full_like(self.most, self.specials.begin) if self.first is None else self.first

    @classmethod
    def of(
        cls,
        config: DecodeConfig,
        lengths: Iterable[int],
        *,
        max_length: int | None = None,
        vocab_size: int | None = None,
        specials: Specials = OUR_SPECIALS,
        device: torch.device | None = None,
    ) -> "Rules":
        """The rules for sources of these lengths, the end token counted.

        >>> rules = Rules.of(DecodeConfig(max_ratio=1.5, max_extra=4), [6])
        >>> rules.most.tolist()
        [11]
        """
        words = [length - 1 for length in lengths]
        most = [math.floor(length * config.max_ratio) + config.max_extra for length in words]
        if max_length is not None:
            most = [min(each, max_length) for each in most]
        least = [
            min(math.ceil(length * config.min_ratio), limit - 1)
            for length, limit in zip(words, most, strict=True)
        ]
        limits = [torch.tensor(each, device=device) for each in (least, most)]
        return cls(limits[0], limits[1], config.length_penalty, vocab_size, specials)

    def of_rows(self, rows: list[int]) -> "Rules":
        """Those of some rows of the batch."""
        first = None if self.first is None else self.first[rows]
        return replace(self, least=self.least[rows], most=self.most[rows], first=first)

    def hypothesis(self, written: list[int], total: float) -> Hypothesis:
        """What was written, with its end if it came, and log p = total as an output with its score."""
        ended = written[-1] == self.specials.end
        ids = written[:-1] if ended else written
        return Hypothesis(ids, float(total / len(written) ** self.penalty), not ended)


def log_probabilities(logits: Tensor, rules: Rules, written: int, sentence: Tensor) -> Tensor:
    """log p (R, V) of the next token of each row; -inf where a rule forbids it.

    What is `never` written does not come, the end not before `least`. sentence (R,) is each row's place in
    the batch. The mass of what is forbidden is not handed to the others: a score is the model's own.
    """
    logp = logits.log_softmax(-1)
    logp[:, list(rules.specials.never)] = float("-inf")
    if rules.vocab_size is not None:
        logp[:, rules.vocab_size :] = float("-inf")
    early = rules.least[sentence] > written  # (R,)
    if early.any():
        logp[early, rules.specials.end] = float("-inf")
    if not bool((logp.amax(-1) > float("-inf")).all()):  # also False for NaN
        raise ModelError("the model gives no token a probability (NaN or infinite); its weights are broken")
    return logp


@dataclass(frozen=True)
class Step:
    """What one step wrote: a row for each output that was not done before it."""

    sentence: Tensor  # (R,) their places in the batch
    ids: Tensor  # (R,)
    logp: Tensor  # (R, V) log p of all that could have been written


class Walk(Generic[S]):
    """Outputs under way: a token a row a step, and a row that is done leaves."""

    def __init__(self, model: Stepper[Any, S], state: S, rules: Rules, choose: Choose) -> None:
        self.model, self.state, self.rules, self.choose = model, state, rules, choose
        self.sentence = torch.arange(len(rules.most), device=rules.most.device)  # (R,) the rows not done
        self.ids = rules.beginning()  # (R,) what is read next
        self.written = 0  # tokens of each row

    def step(self) -> Step:
        """Read the newest ids, and choose what comes next."""
        return self.take(*self.model.step(self.ids, self.state))

    def take(self, logits: Tensor, state: S) -> Step:
        """Choose by logits (R, V), which the model gave for the newest ids together with the state then."""
        logp = log_probabilities(logits, self.rules, self.written, self.sentence)
        self.ids, self.state = self.choose(logp, self.written, self.sentence), state
        self.written += 1
        return Step(self.sentence, self.ids, logp)

    def leave(self, stopped: Tensor | None = None) -> bool:
        """Let rows go that are done, and what is `stopped` (R,); whether any goes on."""
        rules = self.rules
        going = (self.ids != rules.specials.end) & (rules.most[self.sentence] > self.written)
        rows = (going if stopped is None else going & ~stopped).nonzero()[:, 0]
        if 0 < len(rows) < len(self.ids):
            self.state, self.ids = self.state.select(rows), self.ids[rows]
            self.sentence = self.sentence[rows]
        return len(rows) > 0

    def steps(self) -> Generator[Step, Tensor | None, None]:
        """All of them; what is sent in (R,) is done too."""
        going = int(self.rules.most.max()) > 0
        while going:
            going = self.leave((yield self.step()))


def walk(
    model: Stepper[Any, S], state: S, rules: Rules, choose: Choose
) -> Generator[Step, Tensor | None, None]:
    """The steps of a walk."""
    return Walk(model, state, rules, choose).steps()


def write(model: Stepper[Any, S], state: S, rules: Rules, choose: Choose) -> list[Hypothesis]:
    """One output a row of `state`: the whole walk."""
    lengths = torch.zeros_like(rules.most)  # (B,)
    total = torch.zeros(len(lengths), device=lengths.device)  # (B,)
    written: list[Tensor] = []  # a step each: (B,)
    for step in walk(model, state, rules, choose):
        total[step.sentence] += step.logp.gather(1, step.ids[:, None])[:, 0]
        lengths[step.sentence] += 1
        written.append(torch.full_like(lengths, rules.specials.end).scatter(0, step.sentence, step.ids))
    table = torch.stack(written, 1).tolist()  # (B, T)
    return [
        rules.hypothesis(row[:length], logp_sum)
        for row, length, logp_sum in zip(table, lengths.tolist(), total.tolist(), strict=True)
    ]
