"""Where texts are taken apart and answers put together: in threads, so that the event loop goes on answering.

One thread for the short ones and one for the long, so that a book is in no sentence's way. They share the
interpreter with the event loop, which asks for it back every millisecond (`server.py`); therefore no single
step of theirs, a regular expression or a piece of JSON, may take long. Used by `app.py` and `service.py`.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")


class Desk:
    """Two threads that wait for work."""

    def __init__(self) -> None:
        self._short = ThreadPoolExecutor(1, "regard-short")
        self._long = ThreadPoolExecutor(1, "regard-long")

    async def do(self, call: Callable[[], Result], *, long: bool) -> Result:
        """The result of a call, made in a thread."""
        pool = self._long if long else self._short
        return await asyncio.get_running_loop().run_in_executor(pool, call)

    def close(self) -> None:
        """Do no more than what has begun."""
        for pool in (self._short, self._long):
            pool.shutdown(wait=False, cancel_futures=True)
