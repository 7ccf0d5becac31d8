"""Completions over HTTP: what one client gets of a server, and what eight get together.

A decoder of random weights behind `regard serve`, on loopback. Each client asks for texts one after the
other, the likeliest token each; the same requests from one connection and from eight at once, in turn.

    python benchmarks/completions.py [--rounds 5] [--texts 2] [--tokens 64] [--shapes 2]
"""

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import clients
import torch
from report import write_report

SHAPES = {
    "4 layers, d 256": (4, 256, 4096),
    "12 layers, d 768 (GPT-2)": (12, 768, 50257),
}  # layers, d_model, vocabulary
AT_ONCE = 8
PROMPTS = [f"the cat number {number} sat on the mat" for number in range(AT_ONCE)]


def write_model(place: Path, layers: int, width: int, vocabulary: int) -> None:
    """A model folder of that shape, with weights as they are drawn."""
    from regard.config import Config, merge
    from regard.models.decoder import Decoder
    from regard.models.folder import save
    from regard.text.running import RunningText

    tokenizer = RunningText.learn(["".join(PROMPTS)], "bytes")
    shape = {
        "task": "language",
        "model.kind": "decoder",
        "model.encoder_layers": 0,
        "model.n_heads": width // 64,
    }
    shape |= {"model.d_model": width, "model.d_ff": 4 * width, "model.decoder_layers": layers}
    shape |= {"model.vocab_size": vocabulary, "positions.kind": "rotary", "model.dropout": 0.0}
    config = merge(Config(), shape)
    torch.manual_seed(1)
    save(place, config=config, model=Decoder(config), tokenizer=tokenizer, card="# Random weights\n")


def start(model: Path, precision: str) -> clients.Server:
    """A server of it."""
    command = [sys.executable, "-m", "regard", "serve", "-m", str(model), "--precision", precision]
    return clients.started(subprocess.Popen([*command, "--port", "0"], stderr=subprocess.PIPE, text=True))


async def write(port: int, count: int, texts: int, tokens: int) -> float:
    """Tokens a second of `count` clients together."""

    async def one(prompt: str) -> int:
        client, written = clients.Client(port, patience=300.0), 0
        for _ in range(texts):
            asked = {"prompt": prompt, "max_tokens": tokens, "temperature": 0}
            status, body = 503, b""
            while status == 503:  # it is still loading; the round that this may last warms up
                status, body = await client.ask("/v1/completions", json.dumps(asked).encode())
                await asyncio.sleep(0.2 * (status == 503))
            assert status == 200, body
            written += json.loads(body)["usage"]["completion_tokens"]
        client.close()
        return written

    began = time.perf_counter()
    written = await asyncio.gather(*(one(prompt) for prompt in PROMPTS[:count]))
    return sum(written) / (time.perf_counter() - began)


def measured(port: int, options: argparse.Namespace) -> dict[int, float]:
    """Medians for one client and for eight."""
    found: dict[int, list[float]] = {1: [], AT_ONCE: []}
    for number in range(options.rounds + 1):  # the first warms up
        for count, rates in found.items():
            rates += [asyncio.run(write(port, count, options.texts, options.tokens))] * (number > 0)
    return {count: statistics.median(rates) for count, rates in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--texts", type=int, default=2)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--precision", default="int8")
    parser.add_argument("--shapes", type=int, default=len(SHAPES), help="so many of them, the smallest first")
    options = parser.parse_args()
    rows = []
    for name, shape in list(SHAPES.items())[: options.shapes]:
        with tempfile.TemporaryDirectory() as place:
            write_model(Path(place) / "model", *shape)
            server = start(Path(place) / "model", options.precision)
            try:
                found = measured(server.port, options)
            finally:
                server.process.terminate()
                server.process.wait()
        rows.append([name, *(f"{rate:,.0f}" for rate in found.values()), f"{found[AT_ONCE] / found[1]:.2f}×"])
        print(rows[-1], file=sys.stderr, flush=True)
    write_report(
        "completions",
        "Completions of a server, tokens per second",
        ["model", "one client", f"{AT_ONCE} clients", "ratio"],
        rows,
        f"{options.precision}, random weights; {options.rounds} rounds in turn; for each client "
        f"{options.texts} texts of {options.tokens} tokens, one after the other.",
    )


if __name__ == "__main__":
    main()
