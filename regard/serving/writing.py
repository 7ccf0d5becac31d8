"""Who writes on: one thread for all language models, which gives every text under way a token in turn.

So nobody waits for another's whole text; the rows of one request are one batch. A text whose client has gone,
or whose time is over, leaves at its next turn. Memory is promised before a text begins (`Scribe.hold`).
Before this file: `completions.py`; beneath it: `regard.tasks.language.writer`.
"""

import asyncio
import contextlib
import logging
import os
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from regard.serving.batcher import NICE, Counts
from regard.serving.limits import Limits, Refusal

if TYPE_CHECKING:
    from torch import Tensor

    from regard.decoding.search import Step
    from regard.tasks.language.writer import Wish, Writer

SLICE = 64  # places of a prompt whose probabilities are computed at a time
logger = logging.getLogger("regard.serving")


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


class Scribe:
    """The thread, and what it has before it."""

    def __init__(self, limits: Limits, counts: Counts) -> None:
        self.limits, self.counts = limits, counts
        self.held = 0  # bytes that are promised
        self._new: deque[Draft] = deque()
        self._open: deque[tuple[Draft, Iterator[list[News]]]] = deque()
        self._wake = threading.Condition()
        self._closed = False
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Begin; called in the event loop."""
        self._loop = asyncio.get_running_loop()
        threading.Thread(target=self._run, daemon=True).start()

    def hold(self, size: int) -> None:
        """Promise memory, or refuse; it is free again when the text is done."""
        most = self.limits.cache
        if size > most:
            said = (
                f"these texts would take {size // 1_000_000} MB while they are written; {most // 1_000_000}"
            )
            raise Refusal(400, f"{said} are had: ask for fewer or shorter ones", param="max_tokens")
        if self.held + size > most:
            raise Refusal(429, "too many texts are being written; try again in 2 s", retry_after=2)
        self.held += size

    def submit(self, draft: Draft) -> None:
        """Have it written."""
        with self._wake:
            self._new.append(draft)
            self._wake.notify()

    @property
    def waiting(self) -> int:
        """Requests that have not begun."""
        return len(self._new)

    @property
    def idle(self) -> bool:
        """Whether nothing is written and nothing waits."""
        return not self._new and not self._open

    def close(self) -> None:
        """Write no more."""
        with self._wake:
            self._closed = True
            self._wake.notify()

    # The thread -------------------------------------------------------------------------------------

    def _run(self) -> None:
        if hasattr(os, "setpriority"):
            with contextlib.suppress(OSError):
                this = threading.get_native_id()
                os.setpriority(os.PRIO_PROCESS, this, os.getpriority(os.PRIO_PROCESS, this) + NICE)
        while True:
            with self._wake:
                while self.idle and not self._closed:
                    self._wake.wait()
                if self._closed:
                    return
                while self._new:
                    draft = self._new[0]
                    self._open.append((draft, pages(draft)))
                    self._new.popleft()
            for _ in range(len(self._open)):
                self._turn(*self._open[0])

    def _turn(self, draft: Draft, steps: Iterator[list[News]]) -> None:
        """One token of each row of a request; it goes to the end of the line, or leaves."""
        import torch

        from regard.attention.switch import heads_off

        began, news, fault, done = time.perf_counter(), [], None, draft.fault is not None
        try:
            if not done:
                with torch.inference_mode(), heads_off(draft.off):
                    news = next(steps)
        except StopIteration:
            done = True
        except Exception as error:
            logger.exception("a text of %d rows could not be written", len(draft.starts))
            done, fault = True, error
        self.counts.batch(max(1, len(news)), time.perf_counter() - began)
        self._open.rotate(-1)
        if done:
            self._open.pop()
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._deliver, draft, news, done, fault)

    def _deliver(self, draft: Draft, news: Sequence[News], done: bool, fault: Exception | None) -> None:
        if done:
            self.held -= draft.size
        if news or done:
            draft.arrive(news, done=done, fault=fault)


def pages(draft: Draft) -> Iterator[list[News]]:
    """The news of a draft, a step each."""
    if draft.echo and draft.top is not None:
        for number, start in enumerate(draft.starts):
            yield from _echoed(draft, number, start)
    if draft.tokens == 0:
        return
    rows = [_Written(draft) for _ in range(len(draft.starts) * draft.wish.draws)]
    steps, stopped = draft.writer.walk(draft.starts, draft.wish), None
    while True:
        try:
            step = next(steps) if stopped is None else steps.send(stopped)
        except StopIteration:
            return
        numbers, tokens = step.sentence.tolist(), _tokens(step, draft.top)
        yield [
            news
            for row, token in zip(numbers, tokens, strict=True)
            if (news := rows[row].add(row, token)) is not None
        ]
        stopped = _flags([rows[row].text.text.ended == "stop" for row in numbers])


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
