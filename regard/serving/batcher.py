"""Requests of many clients become batches for one engine, and a lone request never waits for company.

Whatever waits when the engine becomes free goes together: a sentence of each request in turn, so that a
long text delays nobody, as many as a batch may hold. What has waited for long comes first, or newcomers could
hold it up for ever. A request whose client has gone leaves the queue. The
engine works in threads of its own, each with a batch, so that it is never idle while answers are sent; the
event loop only hands over and takes back. Before this file: `service.py`; after it: `engine.py`.
"""

import asyncio
import contextlib
import logging
import math
import os
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Hashable, Iterator, Sequence
from typing import Any, Protocol

from regard.serving.limits import Limits
from regard.serving.traces import asked

NICE = 5  # of the engine's threads: to answer comes first, a refusal must not wait for a translation
MEMORY = 4096  # tokens after which half of what is known of the speed is new
LATE = 0.25  # of the time that a request may take: then it waits for no newcomer
GATHER = 0.003  # seconds that a thread waits for more, while another works and it would begin with little
logger = logging.getLogger("regard.serving")
Work = Callable[[Any, Sequence[Any], bool], list[Any]]  # what is wished, texts, alone? -> a result each


class Counts(Protocol):
    """Whoever wants to know what the batcher does."""

    def batch(self, rows: int, seconds: float) -> None: ...
    def dropped(self, sentences: int) -> None: ...


class Job:
    """The sentences of one request; results come in any order."""

    def __init__(self, key: Hashable, texts: Sequence[Any], sizes: Sequence[int]) -> None:
        self.key, self.texts, self.sizes = key, texts, sizes
        self.waiting = deque(range(len(texts)))
        self.results: list[Any] = [None] * len(texts)
        self.missing = len(texts)
        self.fault: Exception | None = None
        self.told = asked()  # wants to know when it is done
        self.handed, self.taken = time.time_ns(), 0
        self.since = time.monotonic()
        self._arrived = asyncio.Event()
        self._done: deque[int] = deque()

    def arrive(self, number: int, result: Any) -> None:
        """One sentence is done; called by the event loop."""
        if isinstance(result, Exception):
            self.fault = result
        self.results[number] = result
        self.missing -= 1
        if not self.missing and self.told is not None:
            self.told(self.handed, self.taken)
        self._done.append(number)
        self._arrived.set()

    def give_up(self, fault: Exception) -> None:
        """Let whoever waits for it have this instead."""
        self.fault = fault
        self._arrived.set()

    async def numbers(self) -> AsyncIterator[int]:
        """The numbers of the sentences as they are done; the fault of the first that failed."""
        left = len(self.texts)
        while left:
            await self._arrived.wait()
            self._arrived.clear()
            if self.fault is not None:
                raise self.fault
            while self._done:
                left -= 1
                yield self._done.popleft()

    async def all(self) -> list[Any]:
        """Every result, in the order of the sentences."""
        while self.missing and self.fault is None:
            self._arrived.clear()
            await self._arrived.wait()
        if self.fault is not None:
            raise self.fault
        return self.results


Batch = Sequence[tuple[Job, int]]


class Batcher:
    """One engine and those who wait for it."""

    def __init__(self, work: Work, limits: Limits, counts: Counts, *, nice: int = NICE) -> None:
        self.work, self.limits, self.counts, self.nice = work, limits, counts, nice
        self._jobs: deque[Job] = deque()
        self._wake = threading.Condition()
        self._running = 0  # sentences in the engine
        self._closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._seconds = 0.1  # that a batch takes, a running mean
        self._tokens = 0  # that have not begun
        self._done = self._spent = 0.0  # tokens of the last batches, and their seconds
        self.threads: list[threading.Thread] = []

    def start(self, workers: int = 1) -> None:
        """Begin with so many threads that ask the engine; called in the event loop."""
        self._loop = asyncio.get_running_loop()
        self.threads = [threading.Thread(target=self._run, daemon=True) for _ in range(workers)]
        for thread in self.threads:
            thread.start()

    def submit(self, key: Hashable, texts: Sequence[Any], sizes: Sequence[int]) -> Job:
        """Put the sentences of a request in the queue; `sizes` are their tokens."""
        job = Job(key, texts, sizes)
        if not texts:
            return job
        with self._wake:
            self._jobs.append(job)
            self._tokens += sum(sizes)
            self._wake.notify()
        return job

    @property
    def waiting(self) -> int:
        """Requests of which something has not begun."""
        return len(self._jobs)

    @property
    def wait(self) -> float:
        """About the seconds that a newcomer waits."""
        return self._seconds * len(self._jobs) / self.limits.rows

    @property
    def ahead(self) -> float:
        """About the seconds that all which has not begun will take; 0 while too little is known."""
        return self.seconds(self._tokens)

    def seconds(self, tokens: int) -> float:
        """About the seconds that so many tokens take; 0 while too little is known."""
        return tokens * self._spent / self._done if self._done >= MEMORY / 2 else 0.0

    def cancel(self, job: Job) -> None:
        """Drop what has not begun; nobody waits for it any more."""
        with self._wake:
            if job in self._jobs:
                self._jobs.remove(job)
                self._tokens -= sum(job.sizes[number] for number in job.waiting)
                self.counts.dropped(len(job.waiting))

    @property
    def idle(self) -> bool:
        """Whether nothing waits and nothing runs."""
        return not self._jobs and not self._running

    def close(self) -> None:
        """End when the running batch is done."""
        with self._wake:
            self._closed = True
            self._wake.notify_all()

    # The engine's threads --------------------------------------------------------------------------

    def _run(self) -> None:
        if hasattr(os, "setpriority"):
            with contextlib.suppress(OSError):
                this = threading.get_native_id()
                os.setpriority(os.PRIO_PROCESS, this, os.getpriority(os.PRIO_PROCESS, this) + self.nice)
        while True:
            with self._wake:
                while not self._jobs and not self._closed:
                    self._wake.wait()
                self._gather()
                if self._closed:
                    return
                if not self._jobs:  # another thread was quicker, or the client went away
                    continue
                batch = self._take()
                alone = self._running == 0 and not self._jobs
                self._running += len(batch)
                if self._jobs:
                    self._wake.notify()
            began = time.perf_counter()
            for part, results in self._results(batch, alone):
                seconds = time.perf_counter() - began
                with self._wake:
                    self._running -= len(part)
                    self._seconds += 0.2 * (seconds - self._seconds)
                    self._learn(sum(job.sizes[number] for job, number in part), seconds)
                self.counts.batch(len(part), seconds)
                if self._loop is not None and not self._loop.is_closed():
                    self._loop.call_soon_threadsafe(self._deliver, part, results)

    def _learn(self, tokens: int, seconds: float) -> None:
        """So long took so much; a little of something slow does not make all that was before it forgotten."""
        kept = MEMORY / (MEMORY + tokens)
        self._done = kept * self._done + tokens
        self._spent = kept * self._spent + seconds

    def _gather(self) -> None:
        """Wait a moment for those who have just been answered and ask again; never where nothing runs."""
        until = time.monotonic() + GATHER
        while self._running and self._waiting() < self._share() and not self._closed:
            left = until - time.monotonic()
            if left <= 0 or not self._wake.wait(left):
                return

    def _waiting(self) -> int:
        return sum(len(job.waiting) for job in self._jobs)

    def _share(self) -> int:
        """This thread's part of all that is to be done, no more than a batch may hold."""
        everything = self._running + self._waiting()
        return min(self.limits.rows, -(-everything // len(self.threads)))

    def _take(self) -> Batch:
        """A sentence of each waiting request in turn, of those that want what the oldest wants.

        No more than this thread's share of all that is to be done: another is free soon. Those that are late
        come first, each as a whole.
        """
        rows = self._share()
        late = time.monotonic() - LATE * self.limits.seconds
        # Stable: the others keep their turns.
        waiting = sorted(self._jobs, key=lambda job: job.since if job.since < late else math.inf)
        key = waiting[0].key
        ring = deque(job for job in waiting if job.key == key)
        batch: list[tuple[Job, int]] = []
        longest = 0
        while ring and len(batch) < rows:
            job = ring.popleft()
            job.taken = job.taken or time.time_ns()
            longest = max(longest, job.sizes[job.waiting[0]])
            if batch and longest * (len(batch) + 1) > self.limits.tokens:
                break
            self._tokens -= job.sizes[job.waiting[0]]
            batch.append((job, job.waiting.popleft()))
            if job.waiting:
                ring.appendleft(job) if job.since < late else ring.append(job)
        served = {id(job) for job, _ in batch}
        left = [job for job in self._jobs if job.waiting]
        self._jobs = deque(sorted(left, key=lambda job: id(job) in served))  # stable: the others first
        return batch

    def _results(self, batch: Batch, alone: bool) -> Iterator[tuple[Batch, Sequence[Any]]]:
        """What the engine makes of a batch; where it fails, of each sentence by itself, told at once.

        Nobody waits for the sentences of others then, and those that nobody waits for are left out.
        """
        texts = [job.texts[number] for job, number in batch]
        try:
            found = self.work(batch[0][0].key, texts, alone)
            assert len(found) == len(batch)
        except Exception as error:
            if len(batch) > 1:
                for each in batch:
                    gone = each[0].fault
                    yield from self._results([each], alone) if gone is None else [([each], [gone])]
                return
            size = f" of {len(texts[0])} characters" if isinstance(texts[0], str) else ""
            logger.exception("a text%s could not be answered", size)
            yield batch, [error]
        else:
            yield batch, found

    def _deliver(self, batch: Batch, results: Sequence[Any]) -> None:
        for (job, number), result in zip(batch, results, strict=True):
            job.arrive(number, result)
