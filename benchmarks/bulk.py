"""Bulk work that is killed again and again: is what comes out byte for byte what one process writes?

A tiny translator is trained for a moment on phrases, then translates many lines: in one process; in parts,
of which random ones are killed (kill -9) at random moments and started again; and on Ray, where random
processes of Ray's are killed.

    nice python benchmarks/bulk.py --lines 100000 --kills 10
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from pathlib import Path

from report import write_report

from regard.tasks.train import train
from regard.text.phrasebook import phrases

SETTINGS = {
    "model.d_model": 32,
    "model.n_heads": 2,
    "model.d_ff": 64,
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
    "text.vocab_size": 400,
    "train.max_steps": 200,
    "train.precision": "fp32",
}
PARTS = 8
MARK = "REGARD_BULK"  # a variable by which processes of Ray's are known as ours


def prepare(folder: Path, count: int) -> tuple[Path, Path]:
    """A model, and lines to translate: phrases with a number each, so that no two are alike."""
    pairs = list(islice(phrases("de"), 3000))
    for ending, side in (("en", 0), ("de", 1)):
        text = "".join(f"{pair[side]}\n" for pair in pairs)
        (folder / f"train.{ending}").write_text(text, encoding="utf-8")
    train(folder / "train.en", folder / "train.de", out=folder / "model", overrides=SETTINGS, quiet=True)
    lines = (f"{pair[0]} {number}\n" for number, pair in zip(range(count), cycle(pairs), strict=False))
    (folder / "in.txt").write_text("".join(lines), encoding="utf-8")
    return folder / "model", folder / "in.txt"


def start(model: Path, source: Path, out: Path, *flags: str) -> subprocess.Popen[bytes]:
    command = [
        sys.executable,
        "-m",
        "regard",
        "translate",
        "-m",
        str(model),
        "-i",
        str(source),
        "-o",
        str(out),
    ]
    return subprocess.Popen([*command, *flags], env=os.environ | {MARK: str(out), "OMP_NUM_THREADS": "1"})


def in_parts(model: Path, source: Path, out: Path, kills: int, draw: random.Random) -> int:
    """Two parts at a time, until all are there; how many were killed."""
    left, killed = list(range(1, PARTS + 1)), 0
    running: dict[int, subprocess.Popen[bytes]] = {}
    pace = draw.uniform(1, 5)
    last = time.monotonic()
    while left or running:
        while left and len(running) < 2:
            number = left.pop(0)
            running[number] = start(model, source, out, "--part", f"{number}/{PARTS}")
        if killed < kills and time.monotonic() - last > pace:
            running[draw.choice(list(running))].kill()
            killed, last, pace = killed + 1, time.monotonic(), draw.uniform(1, 5)
        for number, process in list(running.items()):
            if process.poll() is not None:
                del running[number]
                if process.returncode:
                    left.append(number)
        time.sleep(0.02)
    width = len(str(PARTS))
    names = [out.with_name(f"{out.name}.{number:0{width}}-of-{PARTS}") for number in range(1, PARTS + 1)]
    out.write_bytes(b"".join(path.read_bytes() for path in names))
    return killed


def of_ray(out: Path) -> Iterator[int]:
    """The processes that answer lines for this output."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            named = path.read_bytes().startswith(b"ray::Answerer")
            ours = f"{MARK}={out}".encode() in (path.parent / "environ").read_bytes()
        except OSError:
            continue
        if named and ours:
            yield int(path.parent.name)


def on_ray(model: Path, source: Path, out: Path, kills: int, draw: random.Random) -> int:
    """All of it on Ray; how many of its processes were killed."""
    process, killed, last, pace = start(model, source, out, "--on", "ray"), 0, 0.0, 0.0
    while process.poll() is None:
        if killed < kills and out.exists() and out.stat().st_size and time.monotonic() - last > pace:
            for number in islice(sorted(of_ray(out), key=lambda _: draw.random()), 1):
                os.kill(number, signal.SIGKILL)
                killed, last, pace = killed + 1, time.monotonic(), draw.uniform(0.5, 1.5)
        time.sleep(0.02)
    assert process.returncode == 0
    return killed


def main() -> None:
    """Run them in turn, and compare."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--kills", type=int, default=10)
    asked = parser.parse_args()
    draw = random.Random(1)
    ways: dict[str, Callable[[Path, Path, Path, int, random.Random], int]] = {
        f"{PARTS} parts, two at a time": in_parts,
        "on Ray": on_ray,
    }
    rows = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model, source = prepare(folder, asked.lines)
        began = time.perf_counter()
        assert start(model, source, folder / "whole").wait() == 0
        whole = (folder / "whole").read_bytes()
        assert whole.count(b"\n") == asked.lines
        rows.append(["one process", "0", f"{time.perf_counter() - began:.1f}", "the measure"])
        for place, (way, run) in enumerate(ways.items()):
            began = time.perf_counter()
            killed = run(model, source, folder / f"out{place}", asked.kills, draw)
            same = (folder / f"out{place}").read_bytes() == whole
            rows.append([way, str(killed), f"{time.perf_counter() - began:.1f}", "yes" if same else "NO"])
            print(rows[-1])
    note = f"{asked.lines:,} lines by a tiny translator (1+1 layers, d 32), one thread a process."
    write_report("bulk", "Bulk work that is killed", ["how", "killed", "seconds", "byte-equal"], rows, note)


if __name__ == "__main__":
    main()
