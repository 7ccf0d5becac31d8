"""Honest clients while others misbehave: what the honest notice, what is held, what is lost. Loopback only.

Eight honest clients ask a sentence, read the answer for a moment, and ask the next: first alone, then beside
clients that send everything in turn, so many requests a second, a share of them hostile (`tests/attacks.py`),
until they are used up. These are a process of their own: what they make ready holds up no honest client.
`/health` is asked all the time. More than the server can do is the business of `serve.py`.

    python benchmarks/soak.py MODEL_DIR sentences.txt                    # 100,000 requests
    python benchmarks/soak.py MODEL_DIR sentences.txt --minutes 4        # as many as go in four minutes
    python benchmarks/soak.py MODEL_DIR sentences.txt --requests 3000    # short; nothing is written
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import multiprocessing
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from clients import Client, Server, Tally, ready, start, timed
from report import write_report

sys.path.append(str(Path(__file__).parent.parent / "tests"))
from attacks import ATTACKS, Attack

HONEST, OTHERS, PAUSE = 8, 8, 0.05  # clients of each kind; seconds that an honest one reads an answer
FULL = 100_000
LOOK = 25  # times that /health is asked between two looks at the memory
HOSTILE = [each for each in ATTACKS if not each.path.startswith("/v1/")]  # there is no language model here


@dataclass
class Seen:
    """What was seen of the server from outside."""

    silences: list[float] = field(default_factory=list)  # seconds until /health answered
    megabytes: list[float] = field(default_factory=list)
    codes: Counter[int] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)  # what was said with a 5xx, or "no answer"
    asked: int = 0
    hostile: int = 0


async def honest(server: Server, texts: list[str], tally: Tally, until: asyncio.Event) -> None:
    """One who asks, reads, and asks again."""
    client = Client(server.port)
    number = random.Random(id(tally)).randrange(len(texts))
    while not until.is_set():
        await timed(client, texts[number % len(texts)], tally)
        number += HONEST
        await asyncio.sleep(PAUSE)
    client.close()


async def watch(server: Server, seen: Seen) -> None:
    """How long `/health` takes, and, less often, what the processes hold."""
    client = Client(server.port)
    for number in itertools.count():
        began = time.perf_counter()
        code, _ = await client.ask("/health")
        seen.silences.append(time.perf_counter() - began)
        if number % LOOK == 0:
            seen.megabytes.append(server.megabytes)
        seen.codes[code] += code != 200
        await asyncio.sleep(0.02)


def mixed(texts: list[str], options: Any) -> Iterator[Attack]:
    """Requests of all kinds in random order; each hostile one comes again and again."""
    rng, end = random.Random(1), time.monotonic() + 60 * options.minutes
    for number in range(options.requests):
        if time.monotonic() > end:
            return
        q = texts[number % len(texts)]
        fields: dict[str, Any] = {"q": q}
        if rng.random() < options.share:
            yield rng.choice(HOSTILE)
            continue
        kind = rng.randrange(8)
        if kind == 0:
            fields |= {"words": True}
        elif kind == 1:
            fields |= {"q": f"<p>{q.replace(' ', ' <b>', 1)}</b></p>", "format": "html"}
        elif kind == 2:
            fields |= {"alternatives": 2, "glossary": {"dog": "Hund"}}
        elif kind == 3:
            yield Attack("garbage", "/translate", {}, rng.randbytes(rng.randrange(200)))
            continue
        elif kind == 4:
            yield Attack("detect", "/detect", fields)
            continue
        yield Attack("plain", "/translate", fields)


class Pace:
    """The moments at which requests are due, shared by all who send them."""

    def __init__(self, rate: float) -> None:
        self.rate, self.due = rate, time.monotonic()

    async def turn(self) -> None:
        """Wait for the next moment; those that were missed are not made up for."""
        self.due = max(self.due + 1 / self.rate, time.monotonic() - 1.0)
        await asyncio.sleep(max(0.0, self.due - time.monotonic()))


async def other(port: int, requests: Iterator[Attack], pace: Pace, seen: Seen) -> None:
    """One who sends whatever comes, and waits for longer than the server itself may take."""
    client = Client(port, 150.0)
    for attack in requests:
        await pace.turn()
        seen.asked += 1
        seen.hostile += attack in HOSTILE
        code, body = await client.ask(attack.path, attack.body, attack.kind)
        seen.codes[code] += 1
        if code == 0 or code >= 500:
            seen.faults[f"{attack.name}: {body.decode(errors='replace')[:120] or 'no answer'}"] += 1
    client.close()


def others(port: int, texts: list[str], options: Any, pipe: Any) -> None:
    """All of them, in a process of their own; what they saw goes into the pipe."""
    seen, requests, pace = Seen(), mixed(texts, options), Pace(options.rate)

    async def crowd() -> None:
        await asyncio.gather(*(other(port, requests, pace, seen) for _ in range(OTHERS)))

    asyncio.run(crowd())
    pipe.send(seen)


async def storm_of(server: Server, texts: list[str], options: Any, seen: Seen) -> None:
    """Let the others loose, and wait for what they saw."""
    ours, theirs = multiprocessing.Pipe()
    asked = server.port, texts, options, theirs
    crowd = multiprocessing.get_context("spawn").Process(target=others, args=asked)
    crowd.start()
    try:
        while crowd.is_alive() and not ours.poll():
            await asyncio.sleep(0.1)
        found = ours.recv()
    finally:
        crowd.join()
    seen.codes += found.codes
    seen.faults, seen.asked, seen.hostile = found.faults, found.asked, found.hostile


async def run(options: Any, texts: list[str]) -> list[list[str]]:
    """Quiet, then the storm."""
    server = start(options.model)
    try:
        await ready(server)
        quiet, storm, seen = Tally(), Tally(), Seen()
        await spell(server, texts, quiet, asyncio.sleep(options.seconds))
        idle, _ = server.held, server.megabytes  # the peaks begin here
        watching = asyncio.create_task(watch(server, seen))
        began = time.perf_counter()
        await spell(server, texts, storm, storm_of(server, texts, options, seen))
        took = time.perf_counter() - began
        watching.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await watching
    finally:
        server.process.terminate()
        server.process.wait(timeout=60)
    said = server.process.stderr.read() if server.process.stderr else ""
    return rows(options, quiet, storm, seen, idle, took, said.count("Traceback"))


async def spell(server: Server, texts: list[str], tally: Tally, meanwhile: Any) -> None:
    """The honest clients, as long as something else lasts."""
    over = asyncio.Event()
    clients = asyncio.gather(*(honest(server, texts, tally, over) for _ in range(HONEST)))
    await meanwhile
    over.set()
    await clients


def rows(
    options: Any, quiet: Tally, storm: Tally, seen: Seen, idle: float, took: float, tracebacks: int
) -> list[list[str]]:
    """The table."""
    p99 = [1000 * tally.percentile(0.99) for tally in (quiet, storm)]
    tenths = [seen.megabytes[len(seen.megabytes) * n // 10] for n in range(10)] + seen.megabytes[-1:]
    faults = seen.faults.total()
    silences = sorted(seen.silences)
    return [
        ["requests of the others, seconds", f"{seen.asked:,} of {options.requests:,}, {took:.0f}", ""],
        ["asked for, and sent, a second", f"{options.rate:g}, {seen.asked / took:.0f}", ""],
        ["of them hostile", f"{seen.hostile:,}", ""],
        ["their answers by status", json.dumps(dict(sorted(seen.codes.items()))), "no 5xx"],
        ["of them 5xx, or none at all", ", ".join([str(faults), *map(said, seen.faults.items())]), "0"],
        ["honest answers in quiet, by status", json.dumps(dict(quiet.codes)), "200"],
        ["honest answers in the storm, by status", json.dumps(dict(storm.codes)), "200"],
        ["honest median in quiet and in the storm, ms", medians(quiet, storm), ""],
        ["honest p99 in quiet, ms", f"{p99[0]:.0f}", ""],
        ["honest p99 in the storm, ms", f"{p99[1]:.0f} ({p99[1] / p99[0]:.2f} times)", "at most 2 times"],
        ["longest silence of /health, ms", f"{1000 * silences[-1]:.0f}", "at most 100"],
        ["its p99.9, ms", f"{1000 * silences[int(0.999 * len(silences))]:.0f}", ""],
        [
            "memory above idle, MB, at most",
            f"{max(seen.megabytes) - idle:.0f} (idle: {idle:.0f})",
            "at most 300",
        ],
        ["memory after each tenth, MB", ", ".join(f"{each:.0f}" for each in tenths), "flat"],
        ["tracebacks", str(tracebacks), "0"],
    ]


def said(item: tuple[str, int]) -> str:
    """One kind of fault, as a cell of the table holds it."""
    return f"{item[1]} × {item[0]}".replace("|", " ")


def medians(*tallies: Tally) -> str:
    return ", ".join(f"{1000 * tally.percentile(0.5):.0f}" for tally in tallies)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", help="a model folder")
    parser.add_argument("texts", type=Path, help="a file of sentences")
    parser.add_argument("--requests", type=int, default=FULL)
    parser.add_argument("--minutes", type=float, default=60.0, help="after which no more are sent")
    parser.add_argument("--rate", type=float, default=100.0, help="of the others, requests a second")
    parser.add_argument("--share", type=float, default=0.01, help="of them that are hostile")
    parser.add_argument("--seconds", type=float, default=20.0, help="of quiet")
    options = parser.parse_args()
    found = asyncio.run(run(options, options.texts.read_text(encoding="utf-8").splitlines()))
    for row in found:
        print(" | ".join(row), flush=True)
    if options.requests >= FULL:
        note = f"{HONEST} honest clients and {OTHERS} others; clients and server share one machine."
        write_report("soak", "Honest clients beside others", ["what", "measured", "goal"], found, note)


if __name__ == "__main__":
    main()
