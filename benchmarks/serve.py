"""The server under load: throughput, latency, overload, clients that misbehave, a soak. Loopback only.

Clients run in this process, the server in another. Each part is bounded in count and time.

    python benchmarks/serve.py MODEL_DIR sentences.txt                 # everything, about 15 minutes
    python benchmarks/serve.py MODEL_DIR sentences.txt --quick         # each part short
    python benchmarks/serve.py MODEL_DIR sentences.txt --parts latency throughput
"""

import argparse
import asyncio
import contextlib
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from clients import SECONDS, Client, Server, asking, closed_loop, open_loop, ready, request, start
from report import write_report

# The parts ------------------------------------------------------------------------------------------

Rows = list[list[str]]


def offline(model: str, texts: list[str], mode: str) -> float:
    """Seconds of the engine alone, in a process of its own: all texts, or the median of one at a time."""
    code = (
        "import json, statistics, sys, time\n"
        "from regard.tasks.translation.load import load_translator\n"
        "translator = load_translator(sys.argv[1]); texts = json.load(sys.stdin)\n"
        "translator.translate(texts[:8])\n"
        "def took(some):\n"
        "    began = time.perf_counter(); translator.translate(some); return time.perf_counter() - began\n"
        "print(took(texts) if sys.argv[2] == 'all' else statistics.median(took([t]) for t in texts))\n"
    )
    words = [sys.executable, "-c", code, model, mode]
    done = subprocess.run(words, input=json.dumps(texts), capture_output=True, text=True, check=True)
    return float(done.stdout)


async def latency(server: Server, options: Any, texts: list[str]) -> Rows:
    """A lone request above the engine's own time."""
    some = texts[: 60 if options.quick else 300]
    differences = []
    for _ in range(2 if options.quick else 5):
        alone = offline(options.model, some, "single")
        tally, _ = await closed_loop(server, some, 1)
        differences.append(1000 * (tally.percentile(0.5) - alone))
    return [
        ["lone request above the engine, median ms", f"{statistics.median(differences):.1f}", "at most 5"]
    ]


async def throughput(server: Server, options: Any, texts: list[str]) -> Rows:
    """32 clients against the engine offline, in turn."""
    some = texts[: 500 if options.quick else 3000]
    shares, rates = [], []
    for _ in range(2 if options.quick else 5):
        alone = offline(options.model, some, "all")
        tally, seconds = await closed_loop(server, some, 32)
        assert tally.codes == {200: len(some)}, tally.codes
        shares.append(alone / seconds)
        rates.append(len(some) / seconds)
    rate, share = statistics.median(rates), statistics.median(shares)
    return [
        ["32 clients, sentences/s", f"{rate:.0f}", ""],
        ["of the engine offline", f"{share:.0%}", "at least 80%"],
    ]


async def overload(server: Server, options: Any, texts: list[str]) -> Rows:
    """Four times what it can do."""
    normal, seconds = await closed_loop(server, texts[: 300 if options.quick else 2000], 32)
    rate = sum(normal.codes.values()) / seconds
    flood = await open_loop(server, texts, 4 * rate, 8 if options.quick else 60)
    await asyncio.sleep(5)
    after, _ = await closed_loop(server, texts[:300], 32)
    assert set(flood.codes) <= {200, 429, 503}, flood.codes
    worst = flood.percentile(0.99) / normal.percentile(0.99)
    recovered = after.percentile(0.99) / normal.percentile(0.99)
    return [
        ["4x overload: answers by status", str(dict(sorted(flood.codes.items()))), "200, 429, 503 only"],
        ["p99 of the accepted against normal", f"{worst:.2f}", "at most 2"],
        ["p99 after 5 s against normal", f"{recovered:.2f}", "about 1"],
    ]


@contextlib.asynccontextmanager
async def watched(server: Server) -> AsyncIterator[dict[str, float]]:
    """What misbehaviour costs: memory, and how `/health` answers meanwhile."""
    _ = server.megabytes  # the peaks begin here
    found = {"before": server.held, "peak": 0.0, "slowest": 0.0, "failed": 0.0}

    async def watch() -> None:
        client = Client(server.port)
        while True:
            began = time.perf_counter()
            code, _ = await client.ask("/health")
            found["slowest"] = max(found["slowest"], time.perf_counter() - began)
            found["failed"] += code != 200
            found["peak"] = max(found["peak"], server.megabytes)
            await asyncio.sleep(0.05)

    task = asyncio.create_task(watch())
    try:
        yield found
        await asyncio.sleep(0.5)
    finally:
        task.cancel()


async def misbehave(server: Server, options: Any, texts: list[str]) -> Rows:
    """Clients that hang up, dawdle, send too much, nest too deep, or ask for absurd numbers."""
    rows: Rows = []
    parts = {
        "100 clients hang up": hang_up,
        "100 slow readers and writers": dawdle,
        "1 GB bodies": huge,
        "deep JSON, 1e9, -1, NaN": absurd,
    }
    for name, part in parts.items():
        async with watched(server) as found:
            said = await part(server, texts)
        more = found["peak"] - found["before"]
        assert found["failed"] == 0, "health was not green"
        rows.append(
            [name, f"{said}; +{more:.0f} MB; /health within {found['slowest']:.2f} s", "4xx, 1 s, +50 MB"]
        )
    return rows


async def hang_up(server: Server, texts: list[str]) -> str:
    body = asking("\n".join(texts[:50]))

    async def one(number: int) -> None:
        _, writer = await asyncio.open_connection("127.0.0.1", server.port)
        whole = request("/translate", body)
        writer.write(whole if number % 2 else whole[: len(whole) // 2])
        await writer.drain()
        await asyncio.sleep(0.05)
        writer.close()

    await asyncio.gather(*(one(number) for number in range(100)))
    began = time.perf_counter()
    code, _ = await Client(server.port).ask("/translate", asking(texts[0]))
    return f"the next is answered {code} in {time.perf_counter() - began:.2f} s"


async def dawdle(server: Server, texts: list[str]) -> str:
    pipes = [await asyncio.open_connection("127.0.0.1", server.port) for _ in range(100)]
    body = asking("\n".join(texts[:20]))
    for number, (_, writer) in enumerate(pipes):
        whole = request("/translate", body)
        writer.write(whole[: -9 if number % 2 else len(whole)])
    tally, _ = await closed_loop(server, texts[:50], 4)
    for _, writer in pipes:
        writer.close()
    return f"others meanwhile: {dict(tally.codes)}"


async def huge(server: Server, texts: list[str]) -> str:
    codes: Counter[int] = Counter()
    slowest = 0.0

    async def one() -> None:
        nonlocal slowest
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        began = time.perf_counter()
        writer.write(request("/translate", b"x").replace(b"Length: 1\r", b"Length: 1073741824\r"))

        async def pour() -> None:
            with contextlib.suppress(OSError):
                for _ in range(1 << 14):
                    writer.write(b"x" * 65536)
                    await writer.drain()

        pouring = asyncio.create_task(pour())
        top = await asyncio.wait_for(reader.readuntil(b"\r\n"), SECONDS)
        slowest = max(slowest, time.perf_counter() - began)
        codes[int(top.split()[1])] += 1
        pouring.cancel()
        writer.close()

    await asyncio.gather(*(one() for _ in range(10)))
    return f"{dict(codes)} within {slowest:.2f} s"


async def absurd(server: Server, texts: list[str]) -> str:
    codes: Counter[int] = Counter()
    bodies = [b"[" * 200_000, b'{"q":' * 100_000]
    numbers = ("1e9", "-1", "NaN", "Infinity", "1e999", "9" * 4000)
    bodies += [f'{{"q":"a","target":"de","alternatives":{n}}}'.encode() for n in numbers]
    slowest = 0.0
    for body in bodies * 20:
        began = time.perf_counter()
        code, _ = await Client(server.port).ask("/translate", body)
        slowest = max(slowest, time.perf_counter() - began)
        codes[code] += 1
    return f"{dict(codes)} within {slowest:.2f} s"


async def soak(server: Server, options: Any, texts: list[str]) -> Rows:
    """Memory and descriptors over many requests."""
    count = 2000 if options.quick else 20_000
    marks = []
    for _ in range(5):
        some = [texts[number % len(texts)] for number in range(count // 5)]
        tally, _ = await closed_loop(server, some, 16)
        assert tally.codes == {200: len(some)}, tally.codes
        await asyncio.sleep(1)
        marks.append((server.held, server.descriptors))
    memory = ", ".join(f"{megabytes:.0f}" for megabytes, _ in marks)
    files = ", ".join(str(number) for _, number in marks)
    return [[f"{count:,} requests: MB after each fifth", memory, "flat"], ["descriptors", files, "flat"]]


async def described(server: Server, options: Any, texts: list[str]) -> Rows:
    """Requests that schemathesis makes up from the server's own description, in two processes."""
    count = 500 if options.quick else 5000
    tool = str(Path(sys.executable).parent / "schemathesis")
    words = [tool, "run", f"http://127.0.0.1:{server.port}/spec", "--checks", "not_a_server_error"]
    words += [
        "--max-examples",
        str(count // 8),
        "--phases",
        "fuzzing",
        "--no-color",
    ]  # 4 addresses take fields

    def run(seed: int) -> tuple[int, int]:
        with tempfile.TemporaryDirectory() as folder:  # it keeps what it has seen where it stands
            done = subprocess.run(
                [*words, "--seed", str(seed)], capture_output=True, text=True, check=False, cwd=folder
            )
        if done.returncode:
            print(done.stdout[-3000:])
        found = re.search(r"(\d[\d,]*) generated", done.stdout)
        return done.returncode, int(found[1].replace(",", "")) if found else 0

    both = await asyncio.gather(*(asyncio.to_thread(run, seed) for seed in (1, 2)))
    fine = "FAILED" if any(code for code, _ in both) else "no 5xx"
    return [["schemathesis, cases", f"{sum(cases for _, cases in both):,}: {fine}", "no 5xx"]]


PARTS = {part.__name__: part for part in (latency, throughput, overload, misbehave, soak, described)}


async def run(options: Any, texts: list[str]) -> Rows:
    rows: Rows = []
    server = start(options.model)
    try:
        await ready(server)
        for name in options.parts:
            found = await PARTS[name](server, options, texts)
            for row in found:
                print(" | ".join(row), flush=True)
            rows += found
    finally:
        server.process.terminate()
        server.process.wait(timeout=60)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", help="a model folder")
    parser.add_argument("texts", type=Path, help="a file of sentences")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    texts = options.texts.read_text(encoding="utf-8").splitlines()
    rows = asyncio.run(run(options, texts))
    note = "Clients and server share one machine."
    if not options.quick and options.parts == list(PARTS):
        write_report("serve", "`regard serve` under load", ["what", "measured", "goal"], rows, note)


if __name__ == "__main__":
    main()
