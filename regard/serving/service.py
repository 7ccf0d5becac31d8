"""One server's state: its models by task, who may come in, the threads that work, from loading to the end.

Knows no task and nothing of HTTP but its refusals. Before this file: `limits.py`, `room.py`, `batcher.py`;
after it: the families, which do what is asked, and `app.py`.
"""

import asyncio
import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response

from regard.serving.batcher import NICE, Batcher
from regard.serving.body import Bodies
from regard.serving.desk import Desk
from regard.serving.family import Family, Loading, Place, families
from regard.serving.journal import Journal
from regard.serving.keys import Key, Keys
from regard.serving.limits import Limits, Refusal
from regard.serving.metrics import Metrics
from regard.serving.room import Place as Seat
from regard.serving.room import Room
from regard.serving.traces import Traces

if TYPE_CHECKING:
    from regard.serving.beside import Beside

LOADING, READY, DRAINING = "loading", "ready", "draining"
WORKERS = 4  # batches at a time, at most, in each queue


@dataclass
class Service:
    """One server's state."""

    places: Sequence[Place]
    limits: Limits = field(default_factory=Limits)
    keys: tuple[Key | str, ...] = ()
    loading: Loading = field(default_factory=Loading)
    metrics: Metrics = field(default_factory=Metrics)
    journal: Journal = field(default_factory=Journal)
    traces: Traces | None = None
    req_limit: int = 0  # requests a minute of each client; 0: as many as it likes
    behind_proxy: bool = False  # a client is whom the proxy in front names
    state: str = LOADING
    quiet: bool = False  # it answers nobody before it is ready: others do
    waits: bool = False  # it loads nothing and says so: others load
    relieves: Callable[[], None] | None = None  # sends away who said so meanwhile, before it answers
    inner: Any = None  # the application within the guard
    beside: "Beside | None" = None  # where what is dear is done
    fault: Exception | None = None
    under_way: int = 0  # requests that are being answered
    threads: int = 1  # of the engine

    def __post_init__(self) -> None:
        self.quick = Batcher(self._work, self.limits, self.metrics)
        # What words came from is found by torch, which holds the interpreter: one batch of that at a time, so
        # that who asks for nothing but a translation finds a thread.
        self.tracing = Batcher(self._slow_work, self.limits, self.metrics)
        # What is long is less urgent, and one batch of it runs at a time: a sentence that comes waits neither
        # for a core nor for the interpreter while several of them want it.
        self.slow = Batcher(self._slow_work, self.limits, self.metrics, nice=2 * NICE)
        self.batchers = (self.quick, self.tracing, self.slow)
        self.room = Room(self.limits, lambda: sum(each.wait for each in self.batchers))
        self.desk = Desk()
        self.bodies = Bodies(self.limits, self.desk)
        self.looks = 0  # requests to look inside that are under way
        self.families = families(self, self.places)
        self._folders: dict[Any, Any] = {}  # as they were read, until all models are loaded
        self._unloaded = [
            partial(self._load, family, place)
            for family in self.served
            for place in (*family.places.values(), *family.guests.values())
        ]
        self.metrics.waiting.set_function(self._waiting)
        given = (key if isinstance(key, Key) else Key.of(key) for key in self.keys)
        self.clients = Keys(given, self.req_limit)

    def _work(self, key: Any, texts: Sequence[Any], alone: bool) -> list[Any]:
        """A batch of what one family wishes: `key` is the family and its wish."""
        family, wish = key
        alone = alone and self.tracing.idle and self.slow.idle
        done: list[Any] = family.run(wish, texts, self.threads if alone else self._share())
        return done

    def _slow_work(self, key: Any, texts: Sequence[Any], alone: bool) -> list[Any]:
        family, wish = key
        done: list[Any] = family.run(wish, texts, self.threads if self.quick.idle else self._share())
        return done

    def _share(self) -> int:
        """Threads of a batch that others run beside."""
        return max(1, self.threads // max(1, len(self.quick.threads)))

    def _waiting(self) -> int:
        beside = self.beside.waiting if self.beside is not None else 0
        here = sum(each.waiting for each in self.batchers) + sum(each.waiting for each in self.served)
        return here + beside

    @property
    def served(self) -> list[Family]:
        """The families that have models."""
        return [family for family in self.families.values() if family.places or family.guests]

    async def handed(self, request: Request, given: Mapping[str, Any] | list[bytes]) -> Response | None:
        """The answer to what is dear, from who does it beside; None where it is to be done here.

        `given` are its fields, or the parts of its body that nobody has read.
        """
        if self.beside is None:
            return None
        return await self.beside.answer(self, request, given)

    # From loading to the end -----------------------------------------------------------------------

    @property
    def loaded(self) -> bool:
        """Whether every model is there."""
        return not self._unloaded

    def loads(self) -> Iterator[Callable[[], None]]:
        """What loads each model that is not there yet."""
        while self._unloaded:
            yield self._unloaded.pop(0)
        self._folders.clear()

    def _load(self, family: Family, place: Place) -> None:
        """One model; a folder that several tasks are asked of is read once."""
        from regard.models.folder import sharing

        with sharing(self._folders):
            family.load(place)
        if family.look_field:
            import regard.look  # noqa: F401  (the first to look would load it while everybody waits)

    async def load(self) -> None:
        """Load the models while the server already answers; a fault is kept for whoever started it."""
        if self.waits:
            return
        began = time.perf_counter()
        try:
            for load in self.loads():
                await asyncio.to_thread(load)
            self.quick.start(self._workers())
            self.tracing.start()
            self.slow.start()
            for family in self.served:
                await family.warm()
            if self.beside is not None and not await self.beside.begin(self.metrics):
                self.beside = None
        except Exception as error:
            self.fault = error
            return
        # What stays is looked through no more: a search for garbage among it stopped everybody for 130 ms.
        gc.collect()
        gc.freeze()
        if self.state == LOADING:
            self.state = READY
            count = sum(len(family.places) for family in self.served)
            self.journal.ready(count, time.perf_counter() - began)

    def _workers(self) -> int:
        """Batches at a time: several small ones keep the native engine's cores busier than a large one."""
        counts = [family.engine_threads() for family in self.served]
        known = [count for count in counts if count is not None]
        if len(known) < len(counts):
            return 1  # torch's own threads, and Python's lock
        self.threads = max(known)
        import torch  # it is loaded with the models

        torch.set_num_threads(1)  # of each batch that is looked into: others run beside it
        return min(self.threads + 1, WORKERS)

    @property
    def idle(self) -> bool:
        """Whether nobody waits for an answer."""
        resting = all(family.idle for family in self.served)
        return resting and all(each.idle for each in self.batchers) and self.under_way == 0

    @property
    def working(self) -> bool:
        """Whether the threads that do the work are all there, as far as they were started."""
        return all(thread.is_alive() for batcher in self.batchers for thread in batcher.threads)

    def close(self) -> None:
        """Begin nothing more."""
        for family in self.served:
            family.close()
        for batcher in self.batchers:
            batcher.close()
        self.desk.close()
        self.journal.close()
        if self.traces is not None:
            self.traces.close()

    def check_ready(self) -> None:
        """Refuse while loading or draining."""
        if self.state != READY:
            raise Refusal(503, f"the server is {self.state}; try again soon", retry_after=2)

    def expect(self, seat: Seat, give_up: Callable[[Exception], None], least: float = 0.0) -> None:
        """Give a request up when its time is over; it has so many seconds at least."""
        seconds = max(self.limits.seconds, least)
        said = f"it could not be done within {seconds:.3g} seconds; send less at a time"
        seat.within(seconds, lambda: give_up(Refusal(503, said, retry_after=2)))
