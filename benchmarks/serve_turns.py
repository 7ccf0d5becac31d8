"""The server of this checkout and that of another, in turn: latency, throughput, overload. Loopback only.

Both run all the time, and one of them is asked: what the machine does besides meets both alike. Told are the
medians of the rounds, and of each round the ratio. For other figures of a server see `serve.py`.

    git worktree add ../before COMMIT && (cd ../before && pip install -e . --no-deps)   # it compiles there
    python benchmarks/serve_turns.py MODEL_DIR sentences.txt ../before
"""

import argparse
import asyncio
import statistics
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from clients import Server, closed_loop, open_loop, ready, start
from report import write_report

CLIENTS = 32
Part = Callable[[Server, list[str], float], Awaitable[dict[str, float]]]


async def latency(server: Server, texts: list[str], rate: float) -> dict[str, float]:
    """One client alone."""
    tally, _ = await closed_loop(server, texts[:200], 1)
    return {"lone request, median ms": 1000 * tally.percentile(0.5)}


async def throughput(server: Server, texts: list[str], rate: float) -> dict[str, float]:
    """As many clients as there are places."""
    tally, seconds = await closed_loop(server, texts, CLIENTS)
    assert tally.codes == {200: len(texts)}, tally.codes
    return {f"{CLIENTS} clients, sentences/s": len(texts) / seconds}


async def overload(server: Server, texts: list[str], rate: float) -> dict[str, float]:
    """Four times what can be done."""
    seconds = 6.0
    tally = await open_loop(server, texts, 4 * rate, seconds)
    assert set(tally.codes) <= {200, 429, 503}, tally.codes
    await asyncio.sleep(0.5)
    return {
        "4x overload, answered/s": tally.codes[200] / seconds,
        "their p99, ms": 1000 * tally.percentile(0.99),
    }


PARTS: dict[Part, int] = {latency: 8, throughput: 8, overload: 4}  # and rounds of each


async def compare(options: Any, texts: list[str]) -> list[list[str]]:
    """The table: theirs, ours, and ours to theirs."""
    servers = [start(options.model, options.other), start(options.model)]
    found: dict[str, list[list[float]]] = {}
    try:
        for server in servers:
            await ready(server)
            await closed_loop(server, texts[:300], CLIENTS)
        await asyncio.sleep(2)
        _, seconds = await closed_loop(servers[0], texts, CLIENTS)
        for part, rounds in PARTS.items():
            for number in range(rounds):
                for which in (0, 1) if number % 2 else (1, 0):
                    for name, value in (await part(servers[which], texts, len(texts) / seconds)).items():
                        found.setdefault(name, [[], []])[which].append(value)
    finally:
        for server in servers:
            server.process.terminate()
            server.process.wait(timeout=60)
    return [row(name, *both) for name, both in found.items()]


def row(name: str, before: list[float], now: list[float]) -> list[str]:
    """One figure."""
    ratios = sorted(b / a for a, b in zip(before, now, strict=True))
    each = [f"{statistics.median(values):.4g}" for values in (before, now)]
    spread = f"{ratios[0]:.3f} to {ratios[-1]:.3f} in {len(ratios)} rounds"
    return [name, *each, f"{statistics.median(ratios):.3f}", spread]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", help="a model folder")
    parser.add_argument("texts", type=Path, help="a file of sentences")
    parser.add_argument("other", type=Path, help="another checkout, compiled")
    options = parser.parse_args()
    options.model = str(Path(options.model).resolve())
    texts = options.texts.read_text(encoding="utf-8").splitlines()[:1000]
    rows = asyncio.run(compare(options, texts))
    header = ["what", "the other", "this", "this to the other", "of each round"]
    note = "The goal is within 3%. Clients and servers share one machine."
    write_report("serve_turns", "Two servers in turn", header, rows, note)


if __name__ == "__main__":
    main()
