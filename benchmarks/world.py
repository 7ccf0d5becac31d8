"""Several processes that train one model: are its weights those of one, whoever dies? What does it cost?

    python benchmarks/world.py equal       1, 2, 4 and 8 processes; a Transformer and a GPT-2, Muon and Adam
    python benchmarks/world.py moved       saved by 2 processes, gone on with by 1 and by 4
    python benchmarks/world.py kills       a random process killed at a random moment, restarted by torchrun
    python benchmarks/world.py hosts       two hosts (network namespaces, needs root), one lost and back
    python benchmarks/world.py link        a link of 1 Gbit/s between them, against two that do not talk
    python benchmarks/world.py torchrun    one process under torchrun against none

Tiny models learn phrases of the phrasebook; processes have one thread each. A part has a result of its own.
"""

import argparse
import hashlib
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

from processes import children, command, forked, kill, on_hosts, start, supervised, two_hosts
from report import keep, so_far, write_report

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
SHORT = {"train.save_every": 0.2, "train.valid_every": 10, "train.accumulate": 4, "train.batch_tokens": 128}
LAYERS = {"translation": ("encoder_layers", "decoder_layers"), "language": ("decoder_layers",)}
SIZES = (1, 2, 4, 8)
LINK = {  # a model whose gradients take a moment on a link, in steps that take some seconds
    "model.d_model": 256,
    "model.n_heads": 4,
    "model.d_ff": 1024,
    "model.encoder_layers": 3,
    "model.decoder_layers": 3,
    "train.batch_tokens": 2048,
    "train.save_every": 1e6,
    "train.valid_every": 10**6,
    "train.log_every": 1,
}


def settings(task: str, optimizer: str, steps: int) -> dict[str, Any]:
    """Those of one run."""
    layers = {f"model.{name}": 1 for name in LAYERS[task]}
    return SETTINGS | layers | {"train.optimizer": optimizer, "train.max_steps": steps}


def checksum(out: Path) -> str:
    return hashlib.sha256((out / "model.safetensors").read_bytes()).hexdigest()


def write_files(folder: Path, count: int) -> dict[str, list[Path]]:
    """Phrases as two files, and one of them as running text."""
    pairs = list(islice(phrases("de"), count))
    files = [folder / "phrases.en", folder / "phrases.de"]
    for side, path in enumerate(files):
        path.write_text("".join(f"{pair[side]}\n" for pair in pairs), encoding="utf-8")
    return {"translation": files, "language": files[:1]}


def equal(folder: Path, options: argparse.Namespace) -> list[list[str]]:
    """A row for each task and optimiser: which numbers of processes give the weights of one."""
    files, rows = write_files(folder, options.pairs), []
    for task in files:
        for optimizer in ("muon", "adam"):
            found, seconds = {}, {}
            for size in SIZES:
                out, began = folder / f"{task}-{optimizer}-{size}", time.monotonic()
                codes = forked(size, files[task], out, task, settings(task, optimizer, options.steps))
                assert not any(codes), codes
                found[size], seconds[size] = checksum(out), time.monotonic() - began
            same = [str(size) for size in SIZES if found[size] == found[1]]
            took = ", ".join(f"{seconds[size]:.1f}" for size in SIZES)
            name = f"{task}, {optimizer}, {options.steps} steps, dropout {SETTINGS['model.dropout']}"
            rows.append([name, f"the same bits on {', '.join(same)} processes", f"{took} s"])
            print(rows[-1], flush=True)
    return rows


def moved(folder: Path, options: argparse.Namespace) -> list[list[str]]:
    """Saved half-way by two; one and four go on."""
    files, rows = write_files(folder, options.pairs)["translation"], []
    whole, half = (settings("translation", "muon", steps) for steps in (options.steps, options.steps // 2))
    fixed = {"train.schedule": "constant", "train.warmup": 1}  # by step, not by share of the run
    assert not any(forked(1, files, folder / "whole", "translation", whole | fixed))
    for size in (1, 4):
        out = folder / f"moved{size}"
        codes = forked(2, files, out, "translation", half | fixed)
        codes += forked(size, files, out, "translation", whole | fixed)
        same = not any(codes) and checksum(out) == checksum(folder / "whole")
        rows.append([f"saved by 2 at step {options.steps // 2}, gone on with by {size}", _said(same), ""])
    return rows


def _said(same: bool) -> str:
    return "the same bits" if same else "OTHER BITS"


def kills(folder: Path, options: argparse.Namespace) -> list[list[str]]:
    """Random processes killed at random moments; how many runs ended with the weights of one left alone."""
    files = write_files(folder, options.pairs)["translation"]
    asked = settings("translation", "muon", options.steps) | SHORT
    assert not any(forked(1, files, folder / "whole", "translation", asked))

    def by_command(out: Path, size: int, log: Path) -> "subprocess.Popen[bytes]":
        words = ["--standalone", "--max-restarts", "3", "--nproc_per_node", str(size)]
        return start(command(files, out, asked, *words), log)

    def by_fork(out: Path, size: int, log: Path) -> "subprocess.Popen[bytes]":
        return supervised(files, out, asked, size, log)

    rows = []
    for name, count, launch in (
        ("torchrun", options.kills, by_command),
        ("torchrun's agent, forked", options.forked, by_fork),
    ):
        found = [each for each in so_far(options.kept) if each["under"] == name]
        while len(found) < count:
            out = folder / f"{name}{len(found)}"
            draw = random.Random(f"{options.seed} {out.name}")
            weights, went_on, seconds = _killed(out, launch, draw, options.steps)
            same = weights == checksum(folder / "whole")
            found.append({"under": name, "same": same, "went on": went_on, "seconds": seconds})
            keep(options.kept, found[-1])
        same, again = (sum(each[what] for each in found) for what in ("same", "went on"))
        took = f"{statistics.median(each['seconds'] for each in found):.1f} s a run" if found else ""
        said = (
            f"{same} of {len(found)} the same bits ({again} went on from a checkpoint, the rest began anew)"
        )
        rows += [[f"{len(found)} runs under {name}, kill -9 in each", said, took]] if found else []
    return rows


def _killed(
    out: Path, launch: Callable[[Path, int, Path], Any], draw: random.Random, steps: int
) -> tuple[str, bool, float]:
    """One run with random processes killed at a random moment: the weights' hash, and whether it went on.

    The moment is a step's, for machines differ, and some time after: while it starts, computes, validates,
    saves or ends. A run that has ended before is none.
    """
    while True:
        log, size, began = out.with_name(f"{out.name}.log"), draw.choice((2, 3, 4)), time.monotonic()
        launcher, step, pause = launch(out, size, log), draw.randrange(-1, steps), draw.uniform(0, 1)
        while launcher.poll() is None and (len(children(launcher.pid)) < size or _reached(out) < step):
            time.sleep(0.01)
        time.sleep(pause)
        ranks = children(launcher.pid)
        doomed = draw.sample(ranks, draw.randint(1, len(ranks))) if len(ranks) == size else []
        for rank in doomed:
            os.kill(rank, signal.SIGKILL)
        code = launcher.wait()
        if doomed:
            break
        shutil.rmtree(out)
        log.unlink()
    went_on = "going on from step" in log.read_text(errors="replace")
    told = f"{out.name}: {len(doomed)} of {size} killed {pause:.2f} s after step {step}, code {code}"
    print(told, "went on" if went_on else "began anew", flush=True)
    return checksum(out) if code == 0 else "", went_on, time.monotonic() - began


def _reached(out: Path) -> int:
    """The newest checkpoint's step; -1 before there is one."""
    steps = [int(path.stem.partition("-")[2]) for path in (out / "checkpoints").glob("step-*.safetensors")]
    return max(steps, default=-1)


def hosts(folder: Path, options: argparse.Namespace) -> list[list[str]]:
    """The second of two hosts is lost and comes back."""
    files = write_files(folder, options.pairs)["translation"]
    asked = settings("translation", "muon", options.steps) | {"train.accumulate": 4}
    assert not any(forked(1, files, folder / "whole", "translation", asked))
    out, began = folder / "out", time.monotonic()

    def host(number: int) -> "subprocess.Popen[bytes]":
        return start(command(files, out, asked, *on_hosts("1:2", number)), folder / f"log{number}", number)

    def wait_for(step: int) -> None:
        while first.poll() is None and _reached(out) < step:
            time.sleep(0.02)

    with two_hosts():
        first, second = host(0), host(1)
        wait_for(options.steps // 4)
        kill(second)
        lost = _reached(out)
        wait_for(options.steps // 2)
        alone = _reached(out)
        second = host(1)
        code = first.wait()
        kill(second)
    same = code == 0 and checksum(out) == checksum(folder / "whole")
    log = (folder / "log0").read_text(errors="replace")
    rounds = f"{log.count('2 processes share')} starts with two, {log.count('going on from step')} goings on"
    print(f"lost at step {lost}, came back at {alone}, code {code}, {rounds}", flush=True)
    if code or not same:
        print(log[-3000:])
    name = f"two hosts, one lost at step {lost} and back at {alone} of {options.steps}"
    return [[name, f"{_said(same)}; {rounds}", f"{time.monotonic() - began:.0f} s"]]


def speed(out: Path) -> float:
    """Tokens a second, the median over steps after the first two."""
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return statistics.median(line["tokens_per_second"] for line in lines[2:])


def link(folder: Path, options: argparse.Namespace) -> list[list[str]]:
    """Two hosts on 1 Gbit/s with four batches a process, and two processes that do not talk."""
    files = write_files(folder, 4000)["translation"]
    asked = SETTINGS | LINK | {"train.max_steps": options.link_steps, "text.vocab_size": 1500}
    speeds: dict[str, list[float]] = {"linked": [], "apart": []}
    for number in range(options.rounds):
        pair = [folder / f"apart{number}{host}" for host in "01"]
        running = [
            start(command(files, out, asked | {"train.accumulate": 4}), folder / "log") for out in pair
        ]
        assert not any(process.wait() for process in running)
        speeds["apart"].append(sum(speed(out) for out in pair))
        with two_hosts("1gbit"):
            out = folder / f"linked{number}"
            running = [
                start(command(files, out, asked, *on_hosts("2", host)), folder / f"log{host}", host)
                for host in (0, 1)
            ]
            assert not any(process.wait() for process in running), (folder / "log0").read_text()[-3000:]
        speeds["linked"].append(speed(out))
        print(number, speeds, flush=True)
    linked, apart = (statistics.median(speeds[name]) for name in ("linked", "apart"))
    weights = (folder / "linked0" / "model.safetensors").stat().st_size / 4e6
    name = (
        f"{weights:.1f} million weights, 1 Gbit/s, 4 batches of {LINK['train.batch_tokens']} tokens a process"
    )
    return [
        [name, f"{linked / apart:.0%} of two that do not talk", f"{linked:,.0f} and {apart:,.0f} tokens/s"]
    ]


def torchrun(folder: Path, options: argparse.Namespace) -> list[list[str]]:
    """One process with torchrun and one without, side by side on a core each, which they change each round.

    A shared host's speed changes from one minute to the next, so they run at the same time.
    """
    files = write_files(folder, 4000)["translation"]
    asked = SETTINGS | LINK | {"train.max_steps": options.link_steps, "text.vocab_size": 1500}
    asked |= {"train.accumulate": 2}
    speeds: dict[str, list[float]] = {"none": [], "torchrun": []}
    ways = (("none", []), ("torchrun", ["--standalone", "--nproc_per_node", "1"]))
    for number in range(options.rounds):
        running = [
            start(command(files, folder / f"{name}{number}", asked, *words), folder / "log", core=core)
            for core, (name, words) in enumerate(ways[:: 1 if number % 2 else -1])
        ]
        codes = [process.wait() for process in running]
        assert not any(codes), (folder / "log").read_text()[-3000:]
        for name, _ in ways:
            speeds[name].append(speed(folder / f"{name}{number}"))
        print(number, speeds, flush=True)
    under, none = (statistics.median(speeds[name]) for name in ("torchrun", "none"))
    ratios = [a / b for a, b in zip(speeds["torchrun"], speeds["none"], strict=True)]
    found = f"{statistics.median(ratios):.1%} of the speed of none, median of {len(ratios)} rounds"
    found += f" ({min(ratios):.1%} to {max(ratios):.1%})"
    return [["one process under torchrun", found, f"{under:,.0f} and {none:,.0f} tokens/s"]]


PARTS = {each.__name__: each for each in (equal, moved, kills, hosts, link, torchrun)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("part", choices=PARTS)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument(
        "--forked", type=int, default=80, help="kills more, of processes that load no torch anew"
    )
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--link-steps", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--kept", type=Path, help="kills that are kept here count, and new ones are added")
    parser.add_argument("--pairs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--beside", action="store_true", help="other work ran on the machine: say so")
    options = parser.parse_args()
    warnings.simplefilter("ignore")  # Python 3.12 on fork and threads
    import torch

    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as place:
        rows = PARTS[options.part](Path(place), options)
    note = "Processes of one thread each on one machine, which share its cores."
    note += (
        " Taken beside other work: seconds and speeds are those of a busy machine." if options.beside else ""
    )
    title = f"Several processes train one model: {options.part}"
    write_report(f"world_{options.part}", title, ["what", "found", "how long, how fast"], rows, note)


if __name__ == "__main__":
    main()
