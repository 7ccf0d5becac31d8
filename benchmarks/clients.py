"""A server process and clients as small as they can be, for `serve.py` and `soak.py`. Loopback only."""

import asyncio
import contextlib
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

SECONDS = 30.0  # that any single answer may take
JSON = "application/json"
LENGTH = re.compile(rb"content-length: (\d+)")


@dataclass
class Memory:
    """What a process and those that it started hold; what they share counts once.

    Linux tells the proportional set size (PSS) of each at a moment, and of the resident size also the peak:
    by how much that was higher since the last look is added for every process, so that what came and went
    between two looks counts too.
    """

    processes: list[int]

    @classmethod
    def of(cls, process: int) -> "Memory":
        """A process and its descendants."""
        found = [process]
        for each in found:
            with contextlib.suppress(OSError):
                tasks = Path(f"/proc/{each}/task").iterdir()
                found += [int(child) for task in tasks for child in (task / "children").read_text().split()]
        return cls(found)

    def peak(self) -> float:
        """MB; the next peak begins here."""
        return self.now() + sum(map(_above, self.processes))

    def now(self) -> float:
        """MB."""
        return sum(_told(process, "smaps_rollup", "Pss") for process in self.processes)


def _above(process: int) -> float:
    """MB by which a process was larger than it is, since this was asked last."""
    above = _told(process, "status", "VmHWM") - _told(process, "status", "VmRSS")
    with contextlib.suppress(OSError):
        Path(f"/proc/{process}/clear_refs").write_text("5")
    return max(0.0, above)


def _told(process: int, file: str, name: str) -> float:
    """MB; none of a process that has just ended."""
    with contextlib.suppress(OSError):
        found = re.search(rf"^{name}:\s+(\d+) kB", Path(f"/proc/{process}/{file}").read_text(), re.MULTILINE)
        return int(found[1]) * 1.024e-3 if found else 0.0
    return 0.0


@dataclass
class Server:
    """A server process and what it costs."""

    process: subprocess.Popen[str]
    port: int

    @property
    def megabytes(self) -> float:
        """At most so many since the last time it was asked, of all its processes together."""
        return Memory.of(self.process.pid).peak()

    @property
    def held(self) -> float:
        """MB that its processes hold now."""
        return Memory.of(self.process.pid).now()

    @property
    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))


def start(model: str, checkout: Path | None = None) -> Server:
    """`regard serve` on a free port, of another checkout where one is given."""
    command = [sys.executable, "-m", "regard", "serve", "-m", f"en-de={model}", "--port", "0"]
    more = {} if checkout is None else {"PYTHONPATH": str(checkout)}
    environment = os.environ | more
    return started(
        subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=checkout, env=environment)
    )


def started(process: subprocess.Popen[str]) -> Server:
    """A server process, once it says where it answers."""
    assert process.stderr is not None
    for line in process.stderr:
        if found := re.search(r":(\d+) \(", line):
            return Server(process, int(found[1]))
    raise SystemExit("the server did not start")


class Client(asyncio.Protocol):
    """One connection that is kept; asyncio's streams would cost as much as the server."""

    def __init__(self, port: int, patience: float = SECONDS) -> None:
        self.port, self.patience = port, patience
        self.pipe: asyncio.Transport | None = None
        self.heard = b""
        self.answer: asyncio.Future[tuple[int, bytes]] | None = None

    async def ask(self, path: str, body: bytes | None = None, kind: str = JSON) -> tuple[int, bytes]:
        """Status and body of one request; 0 where there was no answer."""
        kept = self.pipe is not None
        try:
            async with asyncio.timeout(self.patience):
                return await self._ask(path, body, kind)
        except (OSError, TimeoutError) as error:
            self.close()
            # Closed while nobody used it: clients ask again on a new one.
            if kept and not self.heard and not isinstance(error, TimeoutError):
                return await self.ask(path, body, kind)
            return 0, b""

    async def _ask(self, path: str, body: bytes | None, kind: str) -> tuple[int, bytes]:
        loop = asyncio.get_running_loop()
        if self.pipe is None:
            self.pipe, _ = await loop.create_connection(lambda: self, "127.0.0.1", self.port)
        self.heard, self.answer = b"", loop.create_future()
        self.pipe.write(request(path, body, kind))
        return await self.answer

    def data_received(self, data: bytes) -> None:
        """Some of an answer, mostly all of it."""
        self.heard += data
        top, gap, said = self.heard.partition(b"\r\n\r\n")
        if not gap or self.answer is None or self.answer.done():
            return
        length = LENGTH.search(top)
        if length is None or len(said) >= int(length[1]):
            self.answer.set_result((int(top[9:12]), said))
            if b"connection: close" in top.lower():
                self.close()

    def connection_lost(self, error: Exception | None) -> None:
        """The server has closed it."""
        if self.pipe is not None and not self.pipe.is_closing():
            return  # it is the one before
        self.pipe = None
        if self.answer is not None and not self.answer.done():
            self.answer.set_exception(ConnectionResetError())

    def close(self) -> None:
        if self.pipe is not None:
            self.pipe.close()
        self.pipe = None


def request(path: str, body: bytes | None, kind: str = JSON) -> bytes:
    method = "GET" if body is None else "POST"
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\n"
    return f"{head}Content-Length: {len(body or b'')}\r\n\r\n".encode() + (body or b"")


def asking(text: str) -> bytes:
    return json.dumps({"q": text, "source": "en", "target": "de"}).encode()


async def ready(server: Server) -> None:
    client = Client(server.port)
    while (await client.ask("/health"))[0] != 200:
        await asyncio.sleep(0.2)
    client.close()


@dataclass
class Tally:
    """What many requests came to."""

    codes: Counter[int] = field(default_factory=Counter)
    seconds: list[float] = field(default_factory=list)  # of those that were translated

    def percentile(self, share: float) -> float:
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


async def timed(client: Client, text: str, tally: Tally) -> None:
    began = time.perf_counter()
    code, _ = await client.ask("/translate", asking(text))
    tally.codes[code] += 1
    if code == 200:
        tally.seconds.append(time.perf_counter() - began)


async def closed_loop(server: Server, texts: list[str], clients: int) -> tuple[Tally, float]:
    """Each client asks again as soon as it is answered, until the texts are used up."""
    tally, waiting = Tally(), iter(texts)

    async def one() -> None:
        client = Client(server.port)
        for text in waiting:
            await timed(client, text, tally)
        client.close()

    began = time.perf_counter()
    await asyncio.gather(*(one() for _ in range(clients)))
    return tally, time.perf_counter() - began


async def open_loop(server: Server, texts: list[str], rate: float, seconds: float) -> Tally:
    """So many requests a second, whatever becomes of them, over connections that are used again."""
    tally, idle, tasks = Tally(), [], set()

    async def one(text: str) -> None:
        client = idle.pop() if idle else Client(server.port)
        await timed(client, text, tally)
        idle.append(client)

    began, number = time.perf_counter(), 0
    while (now := time.perf_counter() - began) < seconds:
        while number < now * rate:
            task = asyncio.create_task(one(texts[number % len(texts)]))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            number += 1
        await asyncio.sleep(0.002)
    await asyncio.gather(*tasks)
    for client in idle:
        client.close()
    assert sum(tally.codes.values()) == number, "a request was lost"
    return tally
