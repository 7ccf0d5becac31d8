"""How much of what this machine can multiply in int8 a whole translation uses.

The peak is a plain loop of the path's best instruction on registers: no memory, no sums to put together. The
translation is of the shape `base` (6+6 layers, d 512, random weights, 8 to 20 tokens in and 14 out, greedy)
in batches of 64. Its multiplications are those of its matrices, so attention, norms, softmax, choosing and
Python count as time alone. Peak and translation take turns, the best of some rounds counts.

    python benchmarks/peak.py
"""

import argparse
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from report import write_report

from regard.config import Config, DecodeConfig, merge
from regard.decoding.search import Rules
from regard.engine.engine import Engine
from regard.engine.path import path
from regard.models import build
from regard.process.machine import cores

SHAPE = {"d_model": 512, "n_heads": 8, "encoder_layers": 6, "decoder_layers": 6, "d_ff": 2048}
VOCAB, WRITTEN, BATCH = 7872, 14, 64
# One instruction of twelve that wait for nothing but themselves, and the products in it.
INSTRUCTIONS = {
    "avx512-vnni": ("vpdpbusd %zmm30, %zmm31, %zmm{i}", 64),
    "avx-vnni": ("{{vex}} vpdpbusd %ymm14, %ymm15, %ymm{i}", 32),
    "avx2": ("vpmaddubsw %ymm14, %ymm15, %ymm13; vpaddw %ymm13, %ymm{i}, %ymm{i}", 32),
    "neon-i8mm": ("smmla v{i}.4s, v30.16b, v31.16b", 32),
    "neon-dot": ("sdot v{i}.4s, v30.16b, v31.16b", 16),
}
PROGRAM = """
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>
static void repeat(long n) { while (n-- > 0) __asm__ volatile("LOOP"); }
int main(int, char** words) {
    const long n = 20000000;
    const int count = std::atoi(words[1]);
    auto began = std::chrono::steady_clock::now();
    std::vector<std::thread> threads;
    for (int i = 0; i < count; i++) threads.emplace_back(repeat, n);
    for (auto& each : threads) each.join();
    std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - began;
    std::printf("%g", 12.0 * n * count / seconds.count());
}
"""


def peak_of(name: str, folder: Path) -> Callable[[int], float]:
    """Multiplications a second of so many threads that do nothing else."""
    instruction, products = INSTRUCTIONS[name]
    source, program = folder / "peak.cpp", folder / "peak"
    source.write_text(PROGRAM.replace("LOOP", "; ".join(instruction.format(i=i) for i in range(12))))
    march = [] if not name.startswith("neon") else ["-march=armv8.2-a+i8mm+dotprod"]
    subprocess.run(["g++", "-O2", *march, "-pthread", "-o", str(program), str(source)], check=True)

    def measured(threads: int) -> float:
        done = subprocess.run([str(program), str(threads)], capture_output=True, text=True, check=True)
        return products * float(done.stdout)

    return measured


def translation(sentences: int) -> tuple[Callable[[int], float], float]:
    """Seconds of translating with so many threads, and the multiplications in it."""
    overrides = {f"model.{name}": value for name, value in SHAPE.items()}
    config = merge(Config(), {**overrides, "model.vocab_size": VOCAB, "positions.kind": "sinusoidal"})
    model = build(config).eval()
    engine = Engine(model, precision="int8")
    lengths = [8 + i % 13 for i in range(sentences)]
    sources = [torch.randint(300, VOCAB, (length,)).tolist() for length in lengths]
    rules = Rules.of(DecodeConfig(), lengths, max_length=model.max_length, vocab_size=VOCAB)
    rules.least.fill_(WRITTEN - 1)
    rules.most.fill_(WRITTEN)
    d, square, wide = SHAPE["d_model"], SHAPE["d_model"] ** 2, 2 * SHAPE["d_model"] * SHAPE["d_ff"]
    read = SHAPE["encoder_layers"] * (4 * square + wide) + SHAPE["decoder_layers"] * 2 * square
    written = SHAPE["decoder_layers"] * (6 * square + wide) + d * VOCAB

    def seconds(threads: int) -> float:
        began = time.perf_counter()
        engine.search(sources, rules, batch_size=BATCH, threads=threads)
        return time.perf_counter() - began

    return seconds, read * sum(lengths) + written * WRITTEN * sentences


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--sentences", type=int, default=256)
    arguments = parser.parse_args()
    if path() not in INSTRUCTIONS:
        raise SystemExit(f"the path {path()} has no instruction of its own to measure")
    seconds, products = translation(arguments.sentences)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        peak = peak_of(path(), Path(folder))
        for threads in sorted({1, cores()}):
            rounds = [(peak(threads), products / seconds(threads)) for _ in range(arguments.rounds)]
            most, ours = (max(values) for values in zip(*rounds, strict=True))
            rows.append(
                [path(), str(threads), f"{most / 1e9:.0f}", f"{ours / 1e9:.0f}", f"{100 * ours / most:.0f}%"]
            )
    header = ["path", "threads", "peak, billions a second", "base in batches of 64", "share"]
    note = f"{arguments.sentences} sentences, best of {arguments.rounds} rounds. Goal: 50% at least, aim 70%."
    write_report("peak", "Share of the int8 peak", header, rows, note)


if __name__ == "__main__":
    main()
