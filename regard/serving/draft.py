"""One request's texts while they are written: what is told of them, as it comes.

A page is first the echo of its prompts, if that was asked for, then a walk (`regard.decoding.search`); who
steps it hands over what the model gave. Before this file: `regard.tasks.language.writer`; after it:
`writing.py`.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor

    from regard.decoding.search import Step, Walk
    from regard.tasks.language.writer import Wish, Writer

SLICE = 64  # places of a prompt whose probabilities are computed at a time


@dataclass(frozen=True, slots=True)
class Token:
    """One token of a text, and what else could have stood there, the likeliest first."""

    id: int
    logp: float | None  # None: nothing stands before it
    top: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True)
class News:
    """Some more of one row: text that is certain, the tokens it came from, and why it ended if it did."""

    row: int
    text: str
    tokens: Sequence[Token] = ()
    ended: str = ""  # stop or length


@dataclass
class Draft:
    """One request's texts while they are written. Its news come through the event loop."""

    writer: "Writer"
    starts: Sequence[Sequence[int]]  # the ids of the prompts
    wish: "Wish"
    top: int | None = None  # runners-up that are told of each token; None: nothing but text
    echo: bool = False  # the prompts' own probabilities are told first, a row each
    tokens: int = 0  # to write at most; 0: only the echo
    off: Mapping[str, Sequence[int]] = field(default_factory=dict)  # heads that are switched off
    size: int = 0  # bytes that are promised to it
    fault: Exception | None = None
    done: bool = False

    def __post_init__(self) -> None:
        self._arrived = asyncio.Event()
        self._news: deque[News] = deque()

    def arrive(self, news: Sequence[News], *, done: bool = False, fault: Exception | None = None) -> None:
        """There is more, or no more; called by the event loop."""
        self._news.extend(news)
        self.done = self.done or done
        self.fault = self.fault or fault
        self._arrived.set()

    def give_up(self, fault: Exception) -> None:
        """Let whoever waits for it have this instead; the thread drops it at its next turn."""
        self.arrive((), fault=fault)

    async def news(self) -> AsyncIterator[News]:
        """What is written, as it comes."""
        while True:
            await self._arrived.wait()
            self._arrived.clear()
            if self.fault is not None:
                raise self.fault
            while self._news:
                yield self._news.popleft()
            if self.done:
                return


class Page:
    """A draft under way."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.walk: Walk[Any] | None = None  # once its prompts are read
        self.done = False
        self._opening = self._open()
        self._rows: list[_Written] = []

    @property
    def rows(self) -> int:
        """That are under way."""
        return 0 if self.walk is None else len(self.walk.ids)

    @property
    def packed(self) -> bool:
        """Whether the engine reads for it."""
        from regard.decoding.together import beneath

        return self.walk is not None and beneath(self.walk.model) is self.draft.writer.engine

    def open(self) -> list[News]:
        """A step before the walk: a part of the echo, or the prompts are read."""
        try:
            return next(self._opening)
        except StopIteration:  # nothing is to be written
            self.done = True
            return []

    def _open(self) -> Iterator[list[News]]:
        draft = self.draft
        if draft.echo and draft.top is not None:
            for number, start in enumerate(draft.starts):
                yield from _echoed(draft, number, start)
        if draft.tokens:
            self._rows = [_Written(draft) for _ in range(len(draft.starts) * draft.wish.draws)]
            self.walk = draft.writer.begin(draft.starts, draft.wish)
            yield []

    def take(self, logits: "Tensor", state: Any) -> list[News]:
        """A step of the walk, by what the model gave."""
        assert self.walk is not None
        step = self.walk.take(logits, state)
        numbers, tokens = step.sentence.tolist(), _tokens(step, self.draft.top)
        found = [self._rows[row].add(row, token) for row, token in zip(numbers, tokens, strict=True)]
        stopped = _flags([self._rows[row].text.text.ended == "stop" for row in numbers])
        self.done = not self.walk.leave(stopped)
        return [news for news in found if news is not None]


def _flags(values: Sequence[bool]) -> "Tensor":
    import torch

    return torch.tensor(values)


def _tokens(step: "Step", top: int | None) -> list[Token]:
    """What a step wrote, with its runners-up."""
    ids, logps = step.ids.tolist(), step.logp.gather(1, step.ids[:, None])[:, 0].tolist()
    return [
        Token(number, logp, tuple(near))
        for number, logp, near in zip(ids, logps, _runners(step.logp, top), strict=True)
    ]


def _runners(logp: "Tensor", top: int | None) -> list[list[tuple[int, float]]]:
    """Of each row (R, V) the likeliest ids; what never comes is left out."""
    best = logp.topk(min(top or 0, logp.shape[1]))
    pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
    return [[(i, p) for i, p in zip(*row, strict=True) if p > float("-inf")] for row in pairs]


class _Written:
    """One row: tokens are told when their text is certain."""

    def __init__(self, draft: Draft) -> None:
        from regard.tasks.language.writer import Row, Text

        self.draft, self.text = draft, Row(draft.writer.tokenizer, Text(""), draft.wish.stop)
        self.count = self.end = 0
        self.pending: deque[tuple[Token, int, int]] = deque()  # each with the place of its text

    def add(self, row: int, token: Token) -> News | None:
        """Take a token; what can be told by now."""
        self.count += 1
        ends = token.id == self.draft.writer.tokenizer.end_id
        more = self.text.add(token.id, token.logp or 0.0, ends=ends)
        whole = self.text.text
        if not ends:
            start, self.end = self.end, len(whole.text) + len(self.text.held)
            self.pending.append((token, start, self.end))
        ended = (
            "stop" if whole.ended in ("end", "stop") else "length" if self.count == self.draft.tokens else ""
        )
        if ended:
            more += self.text.close()
        tokens = []
        while self.pending and self._certain(*self.pending[0][1:], bool(ended)):
            tokens.append(self.pending.popleft()[0])
        return News(row, more, tokens, ended) if more or tokens or ended else None

    def _certain(self, start: int, end: int, over: bool) -> bool:
        """Whether the text of a token was handed out; where a stop string cut it, some of it."""
        told = len(self.text.text.text)
        return start < told if over else end <= told


def _echoed(draft: Draft, number: int, ids: Sequence[int]) -> Iterator[list[News]]:
    """The probabilities of a prompt's own tokens, as news of its rows; a part of the prompt a step."""
    import torch

    from regard.data.inputs import Tokens

    model, draws = draft.writer.model, draft.wish.draws
    device = next(iter(model.parameters())).device
    tensor = torch.tensor(ids, device=device)
    hidden = model(Tokens(tensor[None, :]))[0]  # (T, D)
    found = [Token(ids[0], None)]
    yield []
    for first in range(0, len(ids) - 1, SLICE):
        asked = tensor[first + 1 : first + 1 + SLICE]  # (T',)
        logp = model.project(hidden[first : first + len(asked)]).float().log_softmax(-1)  # (T', V)
        own = logp.gather(1, asked[:, None])[:, 0].tolist()
        runners = _runners(logp, draft.top)
        found += [Token(i, p, tuple(r)) for i, p, r in zip(asked.tolist(), own, runners, strict=True)]
        yield []
    yield [News(number * draws + each, "", found) for each in range(draws)]
