"""A language model that writes on: prompts in, text out as it comes.

Prompts of unequal length share a batch; a row ends with the end token, before a stop string, or at its bound.
The text of a token is held back while it may still be the beginning of a stop string, or of a character.
Before this file: `regard.decoding` (search, sampling, bending); after it: `regard generate`.
"""

import codecs
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

import torch
from torch import Tensor

from regard.attention.record import running_tape
from regard.attention.switch import any_off
from regard.data.inputs import Tokens, pad_prompts
from regard.decoding.bending import Penalised, Sliding, Tallied
from regard.decoding.greedy import likeliest
from regard.decoding.sampling import Sampling, chances, draw
from regard.decoding.search import Rules, Step, Walk
from regard.decoding.together import beneath
from regard.engine.decoder import undivided
from regard.errors import UsageError
from regard.tasks.itself import ShowsItself
from regard.text.tokenizer import Tokenizer


@dataclass(frozen=True)
class Wish:
    """How to write on: what one call asks for."""

    tokens: int = 200  # at most, after each prompt
    sampling: Sampling | None = None  # None: the likeliest token each time
    draws: int = 1  # texts for each prompt
    penalty: float = 1.0  # above 1: what was read comes less often
    stop: tuple[str, ...] = ()  # a text ends before one of these
    slide: bool = True  # past the model's positions: forget the beginning, instead of refusing
    presence: float = 0.0  # above 0: what was written comes less often,
    frequency: float = 0.0  # the less the more often it was
    bias: tuple[tuple[int, float], ...] = ()  # ids, and what is added to their logits

    def __post_init__(self) -> None:
        for name in ("tokens", "draws"):
            if not 1 <= getattr(self, name) <= 10**6:
                raise UsageError(f"{name} ({getattr(self, name)}) must be between 1 and 1000000")
        if self.draws > 1 and self.sampling is None:
            raise UsageError(f"{self.draws} texts would all be the same: give a temperature to draw them")
        if "" in self.stop:
            raise UsageError("a stop string must hold something")


@dataclass
class Text:
    """What was written after one prompt."""

    prompt: str
    text: str = ""
    ids: list[int] = field(default_factory=list)
    logp: list[float] = field(default_factory=list)  # of each id, as the model has it
    ended: str = "length"  # or end, or stop


@dataclass(frozen=True)
class Piece:
    """Some more text of one row; `whole` when it is the last."""

    row: int
    text: str
    whole: Text | None = None


class Writer(ShowsItself):
    """A model with its tokenizer; `regard.load` makes one from a folder."""

    task = "language"

    def __init__(self, model: Any, tokenizer: Tokenizer, *, context: int = 0) -> None:
        """`context`: tokens that it looks back over; 0: as far as the model's positions go."""
        self.model, self.tokenizer = model, tokenizer
        bounds = [bound for bound in (model.max_length, context) if bound]
        self.longest: int | None = min(bounds, default=None)
        self.engine: Any = None  # steps in the model's place where it can: see `load.py`
        self.note: str | None = None  # what a person should know about how this writer runs

    def generate(self, prompts: Iterable[str], wish: Wish | None = None, *, batch: int = 8) -> Iterator[Text]:
        """The texts of each prompt, in order."""
        wish, left = wish or Wish(), iter(prompts)
        while rows := list(islice(left, batch)):
            found = {piece.row: piece.whole for piece in self.stream(rows, wish) if piece.whole}
            yield from (found[row] for row in range(len(rows) * wish.draws))

    def contextual(self, text: str) -> tuple[list[int], Tensor]:
        """The ids of a text and the vectors (S, D) that the model gives them, by what stands up to each."""
        ids = self.tokenizer.encode(text)
        ids = [self.tokenizer.begin_id, *ids] if self.tokenizer.leads or not ids else ids
        limit = self.longest
        if limit is not None and len(ids) > limit:
            raise UsageError(f"a text has {len(ids)} tokens and this model takes {limit}; shorten it")
        with torch.inference_mode():
            return ids, self.model(Tokens(torch.tensor([ids])))[0].float()

    def stream(self, prompts: Sequence[str], wish: Wish | None = None) -> Iterator[Piece]:
        """The texts of some prompts as they come; row r is text r % draws of prompt r // draws."""
        wish = wish or Wish()
        starts = [self._ids(prompt, wish) for prompt in prompts]
        texts = [
            Row(self.tokenizer, Text(prompt), wish.stop) for prompt in prompts for _ in range(wish.draws)
        ]
        with torch.inference_mode():
            yield from _pieces(self.walk(starts, wish), texts, self.tokenizer.end_id)

    def walk(self, starts: Sequence[Sequence[int]], wish: Wish) -> Generator[Step, Tensor | None, None]:
        """A token a row a step; what is sent in (R,) is done. Prompts are read in the first step."""
        under_way = self.begin(starts, wish)
        steps = under_way.steps()
        yield from steps if beneath(under_way.model) is self.model else undivided(steps)

    def begin(self, starts: Sequence[Sequence[int]], wish: Wish) -> Walk[Any]:
        """The prompts are read, and nothing is written; row r goes on from ids `starts[r // draws]`.

        For whoever wants every token: all of it in `torch.inference_mode`.
        """
        rules = Rules(
            torch.zeros(len(starts), dtype=torch.int64),
            torch.full((len(starts),), wish.tokens),
            vocab_size=self.tokenizer.target_vocab_size,
            specials=self.tokenizer.specials,
            first=torch.tensor([ids[-1] for ids in starts]),
        )
        inputs = pad_prompts([ids[:-1] for ids in starts])
        rows = torch.arange(len(starts)).repeat_interleave(wish.draws)
        choose: Callable[[Tensor, int, Tensor], Tensor] = likeliest
        if (sampling := wish.sampling) is not None:
            chance = chances(inputs, rules, sampling.seed, wish.draws)
            choose = lambda logp, step, row: draw(logp, chance[row, step], sampling)  # noqa: E731
        model = self._bent(wish)
        state = model.start(inputs).select(rows) if wish.draws > 1 else model.start(inputs)
        assert rules.first is not None
        each = replace(rules, least=rules.least[rows], most=rules.most[rows], first=rules.first[rows])
        return Walk(model, state, each, choose)

    def _stepper(self) -> Any:
        """The engine, if it can do what is asked here: it shows no attention and switches no heads off."""
        plain = self.engine is not None and running_tape() is None and not any_off()
        return self.engine if plain else self.model

    def _bent(self, wish: Wish) -> Any:
        """The model, or the engine, with what the wish puts around it."""
        model = self._stepper()
        if wish.slide and self.longest is not None:
            model = Sliding(model, context=self.longest)
        if wish.presence or wish.frequency or wish.bias:
            model = Tallied(model, wish.presence, wish.frequency, wish.bias)
        return model if wish.penalty == 1 else Penalised(model, len(self.model.output_weight), wish.penalty)

    def ids(self, prompt: str) -> list[int]:
        """The ids of a prompt, or what a text begins with."""
        ids = self.tokenizer.encode(prompt)
        return [self.tokenizer.begin_id, *ids] if self.tokenizer.leads or not ids else ids

    def _ids(self, prompt: str, wish: Wish) -> list[int]:
        """The ids of a prompt that fits."""
        ids = self.ids(prompt)
        longest = self.longest
        if longest is not None and not wish.slide and len(ids) + wish.tokens - 1 > longest:
            raise UsageError(
                f"a prompt of {len(ids)} tokens and {wish.tokens} more do not fit into the model's {longest} "
                "places; ask for fewer, or let the beginning be forgotten (--overflow slide)"
            )
        return ids


class Row:
    """One text while it is written."""

    def __init__(self, tokenizer: Tokenizer, text: Text, stop: tuple[str, ...]) -> None:
        self.tokenizer, self.text, self.stop = tokenizer, text, stop
        self.decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self.held = ""  # written, but not handed out yet

    def add(self, number: int, logp: float, *, ends: bool) -> str:
        """Take a token; the text that is certain by now."""
        self.text.logp.append(logp)
        if ends:
            self.text.ended = "end"
            return ""
        self.text.ids.append(number)
        self.held += self.decoder.decode(self.tokenizer.spell([number]))
        found = min((at for each in self.stop if (at := self.held.find(each)) >= 0), default=-1)
        if found >= 0:
            self.text.ended, self.held = "stop", self.held[:found]
            return ""
        return self._hand_out(len(self.held) - self._beginning())

    def close(self) -> str:
        """What was held back; nothing more comes."""
        if self.text.ended != "stop":
            self.held += self.decoder.decode(b"", True)
        return self._hand_out(len(self.held))

    def _hand_out(self, count: int) -> str:
        out, self.held = self.held[:count], self.held[count:]
        self.text.text += out
        return out

    def _beginning(self) -> int:
        """How many of the last characters may be the beginning of a stop string."""
        longest = min(max(map(len, self.stop), default=1) - 1, len(self.held))
        ends = (
            n for n in range(longest, 0, -1) if any(each.startswith(self.held[-n:]) for each in self.stop)
        )
        return next(ends, 0)


def _pieces(steps: Any, texts: list[Row], end: int) -> Iterator[Piece]:
    """The walk as text; a row that meets a stop string leaves it."""
    stopped: Tensor | None = None
    while True:
        try:
            step: Step = steps.send(stopped) if stopped is not None else next(steps)
        except StopIteration:
            break
        numbers, logps = step.ids.tolist(), step.logp.gather(1, step.ids[:, None])[:, 0].tolist()
        for row, number, logp in zip(step.sentence.tolist(), numbers, logps, strict=True):
            if more := texts[row].add(number, logp, ends=number == end):
                yield Piece(row, more)
        stopped = torch.tensor([texts[row].text.ended == "stop" for row in step.sentence.tolist()])
    for row, each in enumerate(texts):
        rest = each.close()
        yield Piece(row, rest, each.text)
