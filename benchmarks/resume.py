"""kill -9 at random moments: does the same command end with the weights of a run never interrupted?

A tiny model trains on phrases of the phrasebook, once undisturbed, then again and again with kills: half
at a moment drawn from the whole run (reading data and the last save included), half as soon as a
checkpoint or the model itself is half written. After its kills each run is left to end, and its model file
is compared. One thread, so that it can run beside other work.

    nice python benchmarks/resume.py --kills 200
"""

import argparse
import hashlib
import os
import random
import shutil
import signal
import tempfile
import time
import warnings
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import torch
from report import write_report

from regard.atomic import TEMPORARY
from regard.tasks.train import train
from regard.text.phrasebook import phrases

SETTINGS = {
    "model.d_model": 24,
    "model.n_heads": 2,
    "model.d_ff": 32,
    "model.encoder_layers": 1,
    "model.decoder_layers": 1,
    "model.dropout": 0.2,
    "text.vocab_size": 300,
    "train.batch_tokens": 256,
    "train.save_every": 0.02,
    "train.log_every": 2,
    "train.valid_every": 5,
    "train.precision": "fp32",  # two runs that must be equal bit for bit choose nothing by the clock
    "train.threads": 1,
}


@dataclass
class Tally:
    """What was done and what came of it."""

    kills: int = 0
    in_saves: int = 0  # with a half-written file left behind
    runs: int = 0
    equal: int = 0


def write_pairs(folder: Path, count: int) -> tuple[Path, Path]:
    """Phrases as two files."""
    pairs = list(islice(phrases("de"), count))
    files = folder / "phrases.en", folder / "phrases.de"
    for side, path in enumerate(files):
        path.write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
    return files


def start(files: tuple[Path, Path], out: Path, steps: int) -> int:
    """Train in a process of its own; its id. A fork, because importing torch takes longer than the run."""
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        train(*files, out=out, overrides=SETTINGS | {"train.max_steps": steps}, quiet=True)
        code = 0
    finally:
        os._exit(code)


def wait(child: int) -> None:
    """Wait for a run to end by itself."""
    _, status = os.waitpid(child, 0)
    if status:
        raise SystemExit(f"a run ended with status {status}")


def kill(child: int, out: Path, moment: float, *, inside: bool) -> bool:
    """kill -9 after `moment` seconds, or inside the next save after it; False if the run ended before."""
    began = time.monotonic()
    while os.waitpid(child, os.WNOHANG)[0] == 0:
        if time.monotonic() - began < moment:
            time.sleep(0.001)
        elif not inside or half_written(out):
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            return True
    return False


def half_written(out: Path) -> bool:
    return any(any(place.glob(f"*{TEMPORARY}")) for place in (out / "checkpoints", out))


def checksum(out: Path) -> str:
    return hashlib.sha256((out / "model.safetensors").read_bytes()).hexdigest()


def measure(folder: Path, options: argparse.Namespace) -> tuple[Tally, float]:
    """All the runs; the tally, and the seconds of the undisturbed one."""
    moments = random.Random(options.seed)
    files = write_pairs(folder, options.pairs)
    began = time.monotonic()
    wait(start(files, folder / "whole", options.steps))
    whole, expected = time.monotonic() - began, checksum(folder / "whole")
    tally, number = Tally(), 0
    while tally.kills < options.kills:
        out, number = folder / f"run{number}", number + 1
        before = tally.kills
        for _ in range(min(options.per_run, options.kills - tally.kills)):
            inside, moment = moments.random() < 0.5, moments.uniform(0, whole)
            began = time.monotonic()
            if kill(start(files, out, options.steps), out, moment, inside=inside):
                tally.kills += 1
                tally.in_saves += half_written(out)
            else:  # the machine was busy the first time
                whole = min(whole, time.monotonic() - began)
        if tally.kills == before:
            continue
        wait(start(files, out, options.steps))
        tally.runs += 1
        tally.equal += checksum(out) == expected
        shutil.rmtree(out)
        print(
            f"{tally.kills} kills, {tally.in_saves} inside a save; {tally.equal} of {tally.runs} runs equal",
            flush=True,
        )
    return tally, whole


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--per-run", type=int, default=1, help="kills before a run may end")
    parser.add_argument("--steps", type=int, default=7)
    parser.add_argument("--pairs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--dry", action="store_true", help="write no result file")
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 on fork and threads
    with tempfile.TemporaryDirectory() as folder:
        tally, whole = measure(Path(folder), options)
    how = f"{options.steps} steps, {options.pairs} pairs, {options.per_run} kills a run, seed {options.seed}"
    row = [f"{tally.kills}", f"{tally.in_saves}", f"{tally.equal} of {tally.runs}", f"{whole:.1f} s"]
    if not options.dry:
        write_report(
            "resume",
            "kill -9 at random moments, then the same command again",
            ["kills", "with a half-written file", "runs with bit-identical weights", "undisturbed run"],
            [row],
            how,
        )
    if tally.equal != tally.runs:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
