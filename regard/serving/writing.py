"""Who writes on: one thread for all language models, which gives every text under way a token in turn.

The newest tokens of all texts go through a model in one pass, whoever asked for them; who comes later joins
the next one, and nobody waits for another's whole text. A text whose client has gone, or whose time is over,
leaves at its next turn. Memory is promised before a text begins (`Scribe.hold`). Before this file:
`draft.py`; after it: `completions.py`.
"""

import asyncio
import contextlib
import logging
import os
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from regard.serving.batcher import NICE, Counts
from regard.serving.draft import Draft, News, Page
from regard.serving.limits import Limits, Refusal

if TYPE_CHECKING:
    from torch import Tensor

logger = logging.getLogger("regard.serving")


@dataclass(frozen=True, slots=True)
class Turn:
    """What one turn brought for a draft."""

    draft: Draft
    news: Sequence[News] = ()
    done: bool = False
    fault: Exception | None = None


class Scribe:
    """The thread, and what it has before it."""

    def __init__(self, limits: Limits, counts: Counts) -> None:
        self.limits, self.counts = limits, counts
        self.held = 0  # bytes that are promised
        self._new: deque[Draft] = deque()
        self._open: list[Page] = []
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
                self._open += [Page(draft) for draft in self._new]
                self._new.clear()
            turns = self._round()
            self._open = [page for page in self._open if not page.done]
            if self._loop is not None and not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._deliver, turns)

    def _round(self) -> list[Turn]:
        """A turn of every page: it leaves, its prompts are read, or each of its rows gets a token."""
        import torch

        turns: list[Turn] = []
        with torch.inference_mode():
            for page in self._open:
                if page.draft.fault is not None:
                    turns.append(_over(page))
                elif page.walk is None:
                    turns.append(self._opened(page))
            left = [page for page in self._open if page.walk is not None and not page.done]
            # Heads are off for whatever runs meanwhile, so such a page is stepped by itself.
            groups = [[page for page in left if not page.draft.off]]
            groups += [[page] for page in left if page.draft.off]
            for group in groups:
                turns += self._written(group) if group else []
        return turns

    def _opened(self, page: Page) -> Turn:
        """A part of its echo, or its prompts."""
        from regard.attention.switch import heads_off

        began = time.perf_counter()
        try:
            with heads_off(page.draft.off):
                news = page.open()
        except Exception as error:
            return _over(page, error)
        self.counts.batch(1, time.perf_counter() - began)
        return Turn(page.draft, news, page.done)

    def _written(self, pages: Sequence[Page]) -> list[Turn]:
        """A token of each row, in one pass where the model has one."""
        from regard.attention.switch import heads_off
        from regard.decoding.together import read_together
        from regard.engine.decoder import one_thread

        began, rows = time.perf_counter(), sum(page.rows for page in pages)
        with one_thread() if all(page.packed for page in pages) else contextlib.nullcontext():
            try:
                with heads_off(pages[0].draft.off):
                    read = read_together([page.walk for page in pages if page.walk is not None])
            except Exception as error:
                if len(pages) == 1:
                    return [_over(pages[0], error)]
                # Nothing is written yet: each again by itself, so that one alone bears the fault.
                return [turn for page in pages for turn in self._written([page])]
            turns = [_taken(page, *given) for page, given in zip(pages, read, strict=True)]
        self.counts.batch(rows, time.perf_counter() - began)
        return turns

    def _deliver(self, turns: Sequence[Turn]) -> None:
        for turn in turns:
            if turn.done:
                self.held -= turn.draft.size
            if turn.news or turn.done:
                turn.draft.arrive(turn.news, done=turn.done, fault=turn.fault)


def _taken(page: Page, logits: "Tensor", state: Any) -> Turn:
    """What a page makes of its part of a pass."""
    try:
        return Turn(page.draft, page.take(logits, state), page.done)
    except Exception as error:
        return _over(page, error)


def _over(page: Page, fault: Exception | None = None) -> Turn:
    """Nothing more of this page."""
    if fault is not None:
        logger.error("a text of %d rows could not be written", len(page.draft.starts), exc_info=fault)
    page.done = True
    return Turn(page.draft, (), True, fault)
