"""Several processes that train one model: are its weights those of one, whoever dies in between?

Tiny models learn phrases of the phrasebook in 1, 2, 4 and 8 processes of one thread each: their model files
are compared. Then a random process of a random number of them is killed (kill -9) at a random moment, the
others must end by themselves, and another number goes on. Processes are forked: torch is loaded once.

    nice python benchmarks/world.py --kills 20
"""

import argparse
import hashlib
import os
import random
import signal
import socket
import tempfile
import time
import warnings
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import torch
import torch.distributed
from report import write_report

from regard.tasks.train import train
from regard.text.phrasebook import phrases

SETTINGS = {
    "model.d_model": 24,
    "model.n_heads": 2,
    "model.d_ff": 32,
    "model.dropout": 0.2,
    "text.vocab_size": 300,
    "train.batch_tokens": 256,
    "train.accumulate": 8,
    "train.save_every": 0.5,
    "train.precision": "fp32",
    "train.threads": 1,
}
LAYERS = {"translation": ("encoder_layers", "decoder_layers"), "language": ("decoder_layers",)}
SIZES = (1, 2, 4, 8)


def settings(task: str, optimizer: str, steps: int) -> dict[str, Any]:
    """Those of one run."""
    layers = {f"model.{name}": 1 for name in LAYERS[task]}
    return SETTINGS | layers | {"train.optimizer": optimizer, "train.max_steps": steps}


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def start(size: int, files: list[Path], out: Path, task: str, asked: Mapping[str, Any]) -> list[int]:
    """The ids of so many processes that train together."""
    port, children = free_port(), []
    for rank in range(size):
        child = os.fork()
        if child == 0:
            told = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": size, "MASTER_PORT": port}
            os.environ.update(
                {name: str(value) for name, value in told.items()} | {"MASTER_ADDR": "127.0.0.1"}
            )
            code = 1
            try:
                train(*files, task=task, out=out, overrides=asked, quiet=True)
                code = 0
            except SystemExit as leave:
                code = int(leave.code or 0)
            except OSError:
                code = 5  # the others are gone
            finally:
                os._exit(code)
        children.append(child)
    return children


def wait(children: list[int]) -> list[int]:
    """Their exit codes."""
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def checksum(out: Path) -> str:
    return hashlib.sha256((out / "model.safetensors").read_bytes()).hexdigest()


def write_files(folder: Path, count: int) -> dict[str, list[Path]]:
    """Phrases as two files, and one of them as running text."""
    pairs = list(islice(phrases("de"), count))
    files = [folder / "phrases.en", folder / "phrases.de"]
    for side, path in enumerate(files):
        path.write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
    return {"translation": files, "language": files[:1]}


def equal(folder: Path, files: Mapping[str, list[Path]], steps: int) -> list[list[str]]:
    """A row for each task and optimiser: which numbers of processes give the weights of one."""
    rows = []
    for task in files:
        for optimizer in ("muon", "adam"):
            found, seconds = {}, {}
            for size in SIZES:
                out, began = folder / f"{task}-{optimizer}-{size}", time.monotonic()
                codes = wait(start(size, files[task], out, task, settings(task, optimizer, steps)))
                assert not any(codes), codes
                found[size], seconds[size] = checksum(out), time.monotonic() - began
            same = [str(size) for size in SIZES if found[size] == found[1]]
            took = ", ".join(f"{seconds[size]:.1f}" for size in SIZES)
            rows.append(
                [f"{task}, {optimizer}, {steps} steps", f"the same bits on {', '.join(same)}", f"{took} s"]
            )
            print(rows[-1], flush=True)
    return rows


def killed(folder: Path, files: Mapping[str, list[Path]], options: argparse.Namespace) -> list[str]:
    """Random processes killed at random moments; how many runs ended with the weights of one left alone."""
    moments, asked = random.Random(options.seed), settings("translation", "muon", options.steps)
    began = time.monotonic()
    assert not any(wait(start(2, files["translation"], folder / "whole", "translation", asked)))
    whole, same = time.monotonic() - began, 0
    for number in range(options.kills):
        out, size = folder / f"killed{number}", moments.choice(SIZES[1:3])
        children = start(size, files["translation"], out, "translation", asked)
        time.sleep(moments.uniform(0, whole))
        os.kill(moments.choice(children), signal.SIGKILL)
        codes = wait(children)
        ended = wait(start(moments.choice(SIZES[:3]), files["translation"], out, "translation", asked))
        same += not any(ended) and checksum(out) == checksum(folder / "whole")
        print(f"{number + 1} kills: {codes} then {ended}, {same} equal", flush=True)
    return [f"{options.kills} kills, another number goes on", f"{same} of {options.kills} the same bits", ""]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--pairs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")  # Python 3.12 on fork and threads
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        files = write_files(folder, options.pairs)
        rows = [*equal(folder, files, options.steps), killed(folder, files, options)]
    write_report(
        "world",
        "Several processes train one model",
        ["what", "found", "seconds on 1, 2, 4, 8 processes"],
        rows,
        "Processes of one thread each on one machine, train.accumulate=8; more than two share its cores.",
    )


if __name__ == "__main__":
    main()
