"""The routes of a real server under hostile requests: who else asks must be answered meanwhile.

First every request that once did harm, alone; then, for some minutes, what the mutator of the tests makes of
them, raw bytes on the socket, and what schemathesis makes up from the server's own description. A process of
its own asks for `/health` all the time. Loopback only.

    python benchmarks/fuzz_routes.py MODEL_DIR --minutes 10
"""

import argparse
import asyncio
import contextlib
import http.client
import multiprocessing
import os
import re
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from random import Random
from typing import Any

from clients import Memory
from report import write_report

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))
CLIENTS = 6  # that send hostile requests at the same time
PAUSE = 0.005  # seconds between two questions for /health
PATIENCE = 60.0  # seconds for an answer


# The one who watches ---------------------------------------------------------------------------------


def denied(*processes: int) -> float:
    """Seconds that the first threads of these processes stood in line for a core, so far."""
    found = (Path(f"/proc/{process}/schedstat").read_text() for process in processes)
    return sum(int(each.split()[1]) for each in found) / 1e9


def watch(port: int, process: int, pipe: Connection) -> None:
    """Ask for /health until told to end; a word on the pipe ends a part and gets what was seen in it.

    Of the longest wait it is told how much of it the server, or this watcher, stood in line for a core, which
    is the doing of whatever else runs on the machine; and the longest without that.
    """
    longest, ours, failed, count = (0.0, 0.0), 0.0, 0, 0
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    while True:
        began, stood = time.perf_counter(), denied(process, os.getpid())
        try:
            client.request("GET", "/health")
            answer = client.getresponse()
            answer.read()
            failed += answer.status != 200
        except OSError:
            client.close()
            failed += 1
        took, stood = time.perf_counter() - began, denied(process, os.getpid()) - stood
        longest, ours, count = max(longest, (took, stood)), max(ours, took - stood), count + 1
        if pipe.poll(PAUSE):
            if pipe.recv() is None:
                return
            pipe.send((*longest, ours, failed, count))
            longest, ours, failed, count = (0.0, 0.0), 0.0, 0, 0


@dataclass
class Watched:
    """A server, its watcher, and what it answered."""

    process: subprocess.Popen[bytes]
    port: int
    pipe: Any
    idle: float = 0.0  # MB
    peak: float = 0.0  # MB above that in this part
    codes: Counter[int] = field(default_factory=Counter)
    sent: int = 0

    def look(self) -> float:
        """The most MB above idle since it was looked at last, of all its processes."""
        found = Memory.of(self.process.pid).peak() - self.idle
        self.peak = max(self.peak, found)
        return found

    async def keep_looking(self) -> None:
        """Twice a second: the more often, the less is added of peaks that did not come together."""
        while True:
            self.look()
            await asyncio.sleep(0.5)

    def row(self, what: str) -> list[str]:
        """What the part that ends here has shown; the next begins."""
        self.pipe.send("so far")
        longest, stood, ours, failed, count = self.pipe.recv()
        self.look()
        peak, self.peak = self.peak, 0.0
        codes = ", ".join(f"{code}: {number:,}" for code, number in sorted(self.codes.items()))
        faults = sum(number for code, number in self.codes.items() if code >= 500 and code != 503)
        row = [
            what,
            f"{self.sent:,}",
            codes,
            str(faults),
            f"{1000 * longest:.0f} ms, {1000 * stood:.0f} of them without a core",
            f"{1000 * ours:.0f} ms of {count:,}",
            str(failed),
        ]
        self.codes, self.sent = Counter(), 0
        print(" | ".join([*row, f"{peak:.0f}"]), flush=True)
        return [*row, f"{peak:.0f}"]


# Those who ask ---------------------------------------------------------------------------------------


async def send(server: Watched, data: bytes) -> None:
    """Bytes on a connection of their own; the status of what comes back, 0 for nothing."""
    code = 0
    try:
        async with asyncio.timeout(PATIENCE):
            reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
            try:
                writer.write(data)
                await writer.drain()
                top = await reader.readuntil(b"\r\n")
                code = int(top.split()[1])
                while await reader.read(1 << 16):
                    pass
            finally:
                writer.close()
    except (
        OSError,
        TimeoutError,
        asyncio.IncompleteReadError,
        asyncio.LimitOverrunError,
        ValueError,
        IndexError,
    ):
        pass
    server.codes[code] += 1
    server.sent += 1


def framed(data: bytes) -> bytes:
    """An input of the reader `body` as it goes over the line."""
    head, _, content = data.partition(b"\n")
    path, _, kind = head.partition(b" ")
    method = b"POST" if content else b"GET"
    top = [method + b" /" + path.strip().lstrip(b"/").replace(b" ", b"") + b" HTTP/1.1", b"Host: x"]
    top += [b"Connection: close", b"Content-Type: " + kind.strip(), b"Content-Length: %d" % len(content)]
    return b"\r\n".join([*top, b"", content])


async def fuzz(server: Watched, seeds: list[bytes], raw: list[bytes], end: float, seed: int) -> None:
    """One client that sends what the mutator makes, until the end."""
    from fuzz.mutate import mutated

    rng = Random(seed)
    words = [
        b"words",
        b"glossary",
        b"html",
        b"alternatives",
        b"heads_off",
        b"\r\n",
        b"Transfer-Encoding: chunked",
    ]
    while time.monotonic() < end:
        if rng.random() < 0.2:
            data = mutated(rng.choice(raw), rng, "bytes", words, raw)
        else:
            data = framed(mutated(rng.choice(seeds), rng, "request", words, seeds))
        await send(server, data)


async def describe(server: Watched, end: float) -> int:
    """schemathesis, again and again until the end; how often it found a server error."""
    tool, failed, seed = str(Path(sys.executable).parent / "schemathesis"), 0, 0
    words = ["run", f"http://127.0.0.1:{server.port}/spec", "--checks", "not_a_server_error"]
    words += ["--max-examples", "200", "--phases", "fuzzing", "--no-color", "--seed"]
    while time.monotonic() < end:
        seed += 1
        with tempfile.TemporaryDirectory() as folder:
            process = await asyncio.create_subprocess_exec(
                tool, *words, str(seed), cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
            )
            try:
                said, _ = await asyncio.wait_for(process.communicate(), max(1.0, end - time.monotonic()))
            except TimeoutError:
                process.kill()
                await process.wait()
                break
        if process.returncode:
            failed += 1
            print(said.decode()[-3000:], flush=True)
    return failed


async def attack(server: Watched, minutes: float) -> tuple[list[list[str]], int]:
    """Quiet, then each known input alone, then everything at once."""
    from fuzz.texts import bodies, raw_requests

    seeds, raw = bodies(), raw_requests()
    await asyncio.sleep(min(20.0, 10 * minutes))
    rows = [server.row("nobody asks")]
    most: dict[float, bytes] = {}
    for data in [*map(framed, seeds), *raw]:
        server.look()
        before = server.look()
        await send(server, data)
        most[server.look() - before] = data
    for size in sorted(most)[-5:]:
        start, _, end = most[size].partition(b"\r\n\r\n")
        print(f"  {size:5.0f} MB more: {start[:30]!r} ... {end[:90]!r}, {len(end):,} bytes", flush=True)
    rows.append(server.row("every known input, one after the other"))
    end = time.monotonic() + 60 * minutes
    small = [data for data in seeds if len(data) < 60_000]
    clients = [
        fuzz(server, small, [each for each in raw if len(each) < 60_000], end, n) for n in range(CLIENTS)
    ]
    looking = asyncio.create_task(server.keep_looking())
    failed, *_ = await asyncio.gather(describe(server, end), *clients)
    looking.cancel()
    rows.append(server.row(f"{minutes:g} minutes of fuzzing, {CLIENTS} clients and schemathesis"))
    return rows, failed


def healthy(port: int) -> bool:
    """Whether the server is ready."""
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    with contextlib.closing(client), contextlib.suppress(OSError):
        client.request("GET", "/health")
        return client.getresponse().status == 200
    return False


def start(model: str, log: Path) -> Watched:
    """`regard serve` of a translator and a small language model, ready, and its watcher."""
    from writers import write_writer

    writer = write_writer(log.parent / "writer", positions__kind="rotary")
    words = [sys.executable, "-m", "regard", "serve", "-m", f"en-de={model}", "-m", str(writer)]
    words += ["--port", "0"]
    with log.open("wb") as file:
        process = subprocess.Popen(words, stderr=file, env=os.environ | {"PYTHONPATH": str(ROOT)})
    while not (found := re.search(rb"http://[^ ]*:(\d+)", log.read_bytes())) or not healthy(int(found[1])):
        time.sleep(0.1)
        if process.poll() is not None:
            raise SystemExit(log.read_text())
    port = int(found[1])
    ours, theirs = multiprocessing.Pipe()
    multiprocessing.get_context("spawn").Process(
        target=watch, args=(port, process.pid, theirs), daemon=True
    ).start()
    server = Watched(process, port, ours)
    server.pipe.send("so far")
    server.pipe.recv()
    time.sleep(2)  # who answered while the models were loaded has gone
    memory = Memory.of(process.pid)
    server.idle, _ = memory.now(), memory.peak()  # the peaks begin here
    return server


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", help="a model folder")
    parser.add_argument("--minutes", type=float, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "server.log"
        server = start(options.model, log)
        try:
            rows, failed = asyncio.run(attack(server, options.minutes))
            alive = server.process.poll() is None
        finally:
            server.pipe.send(None)
            server.process.terminate()
            server.process.wait(timeout=60)
        said = log.read_text(errors="replace")
    header = ["part", "requests", "answers by status (0: none)", "5xx but 503"]
    header += ["longest wait for /health", "longest but for cores", "of them failed", "MB above idle, peak"]
    note = (
        f"The server {'was' if alive else 'was NOT'} alive at the end; {said.count('Traceback')} tracebacks "
        f"in its log of {len(said):,} characters; schemathesis found server errors in {failed} runs. Idle: "
        f"{server.idle:.0f} MB. The goals: 100 ms, 300 MB, no 5xx. All share one machine."
    )
    write_report("fuzz_routes", "The routes under hostile requests", header, rows, note)


if __name__ == "__main__":
    main()
