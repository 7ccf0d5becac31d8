"""How many may be inside: requests under way, the long ones among them, and the bytes held for all.

A request has its place before anything is done for it, says what it will take before the engine begins, and
keeps that until its answer is sent. Who finds no room is told to come back. Touched by the event loop alone.
Before this file: `guard.py`; after it: `service.py`.
"""

import asyncio
from collections.abc import Callable

from regard.serving.limits import Limits, Refusal


class Place:
    """One request's place."""

    def __init__(self, room: "Room", long: bool) -> None:
        self._room, self.long = room, long
        self._waits, self._bytes = True, 0
        self._alarm: asyncio.TimerHandle | None = None

    def hold(self, size: int) -> None:
        """So many bytes will be held for it."""
        room = self._room
        most = room.limits.held // 2
        if size > most:
            said = f"the answer would take {size // 1_000_000} MB here, at most {most // 1_000_000} are had"
            raise Refusal(413, f"{said}; send less text, or ask for fewer alternatives")
        if room.held + size > room.limits.held:
            raise room.full("too much text at once")
        room.held += size
        self._bytes += size

    def within(self, seconds: float, late: Callable[[], None]) -> None:
        """Call `late` unless all is done by then; what was said before counts no more."""
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = asyncio.get_running_loop().call_later(seconds, late)

    def computed(self) -> None:
        """The engine is done with it: another may come in."""
        if self._waits:
            self._waits = False
            self._room.inside -= 1
            self._room.long -= self.long
        if self._alarm is not None:
            self._alarm.cancel()

    def leave(self) -> None:
        """The answer is sent, or nobody waits for it."""
        self.computed()
        self._room.held -= self._bytes
        self._bytes = 0


class Room:
    """Everybody's places; `wait` tells the seconds until there will be one."""

    def __init__(self, limits: Limits, wait: Callable[[], float]) -> None:
        self.limits, self._wait = limits, wait
        self.inside = self.long = self.held = 0

    def enter(self, *, long: bool = False) -> Place:
        """A place, or a refusal."""
        if refusal := self.refusal():
            raise refusal
        if long and self.long >= self.limits.long_requests:
            raise self.full(f"too many long requests at once ({self.limits.long_requests})")
        self.inside += 1
        self.long += long
        return Place(self, long)

    def refusal(self) -> Refusal | None:
        """Where there are as many as may be: that it is so, and when to come back.

        Those in the engine count: whoever is taken waits for all before him, begun or not.
        """
        if self.inside < self.limits.requests:
            return None
        return self.full(f"too many requests at once ({self.limits.requests})")

    def check_ahead(self, before: float, own: float) -> None:
        """Refuse who would be given up in the end: seconds that others take before it, and its own."""
        if before and before + own > self.limits.seconds / 2:
            said = f"what is before you takes {before:.0f} s; try again then"
            raise Refusal(429, said, retry_after=1 + int(before))

    def full(self, why: str) -> Refusal:
        """Come back later."""
        seconds = 1 + int(self._wait())
        return Refusal(429, f"{why}; try again in {seconds} s", retry_after=seconds)
