"""What a generator of digits is worth after so many minutes, with attention and without, in equal time.

The plain command on MNIST's training files, a run a seed and a way; then `regard evaluate` on the test files,
which training never saw: features and classifier are the folder's own, so no distance here is an FID. Real
test pictures stand in the last row. A run whose folder is finished is not trained again.

With `--steps` time is equal by counting: the first way trains for so many steps, the others for as many as
take the processor as long. A step is timed first, each way in turn in a process of its own, so that what else
the machine does while they train weighs nothing. Ways of one seed have one judge: it follows from the seed.

    python benchmarks/gan.py MNIST runs/gan --minutes 20 --seeds 1
    python benchmarks/gan.py MNIST runs/gan --steps 2000 --seeds 1 2 3 --ways attention none --name gan_ways
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from report import write_report

WAYS = {"attention": [], "none": ["--set", "gan.attend=0"]}
SCORES = ("classified", "taught", "coverage", "density", "precision", "recall", "frechet")
REGARD = [sys.executable, "-m", "regard"]
ROUNDS = 5


def step_seconds(flags: list[str]) -> float:
    """The median processor time of a step on one thread: both losses, both moved."""
    import torch

    from regard.config import Config, merge, parse_set
    from regard.config.gan import GanConfig
    from regard.models import build
    from regard.tasks.gan import TASK
    from regard.tasks.gan.objective import Adversaries, PictureBatch

    torch.set_num_threads(1)
    sizes = {"gan.side": 28, "gan.channels": 1, "gan.classes": 10, "gan.augment": "none"}
    asked = dict(parse_set(flag) for flag in flags if flag != "--set")
    config = merge(Config(), TASK.defaults() | sizes | asked)
    model: Any = build(config)
    objective = Adversaries(config.of(GanConfig))
    movers = {
        name: torch.optim.Adam(group.weights, lr=1e-4) for name, group in objective.groups(model).items()
    }
    batch = PictureBatch(torch.randint(256, (64, 1, 28, 28)).byte(), torch.arange(64) % 10)
    taken = []
    for _ in range(12):
        start = time.process_time()
        with torch.autocast("cpu", torch.bfloat16):
            for loss in objective.losses(model, batch):
                loss.total.backward()  # type: ignore[no-untyped-call]
                movers[loss.group].step()
                movers[loss.group].zero_grad()
        taken.append(time.process_time() - start)
    return statistics.median(taken[2:])


def equal_steps(ways: list[str], steps: int, settings: list[str]) -> dict[str, tuple[int, float]]:
    """For each way how many steps it has, and the seconds of one; in turn, each in its own process."""
    found: dict[str, list[float]] = {way: [] for way in ways}
    for _ in range(ROUNDS):
        for way, times in found.items():
            call = [sys.executable, __file__, "-", "-", "--one", way, "--set", "gan.noise=64", *settings]
            times.append(float(subprocess.run(call, check=True, capture_output=True, text=True).stdout))
    seconds = {way: statistics.median(times) for way, times in found.items()}
    return {way: (round(steps * seconds[ways[0]] / each), each) for way, each in seconds.items()}


def trained(data: Path, folder: Path, flags: list[str]) -> dict[str, Any]:
    """One run, finished, and its scores on the test pictures."""
    run = folder / "checkpoints" / "run.json"
    if not (run.exists() and json.loads(run.read_text(encoding="utf-8"))["finished"]):
        subprocess.run([*REGARD, "train", "--task", "gan", str(data), "-o", str(folder), *flags], check=True)
    kept = folder / "test.json"
    if not kept.exists():
        call = [*REGARD, "evaluate", "-m", str(folder), str(data), "--json"]
        kept.write_text(
            subprocess.run(call, check=True, capture_output=True, text=True).stdout, encoding="utf-8"
        )
    result = json.loads(run.read_text(encoding="utf-8"))["result"]
    return json.loads(kept.read_text(encoding="utf-8")) | {
        name: result[name] for name in ("steps", "seconds")
    }


def row(name: str, found: list[dict[str, Any]]) -> list[str]:
    """The mean of some runs, with the deviation where there are several."""
    cells = [name, f"{statistics.mean(each['steps'] for each in found):,.0f}"]
    for score in SCORES:
        values = [each[score] for each in found]
        spread = f" ± {statistics.stdev(values):.3f}" if len(values) > 1 else ""
        cells.append(f"{statistics.mean(values):.3f}{spread}")
    return cells


def measured(options: argparse.Namespace) -> tuple[dict[str, list[dict[str, Any]]], str]:
    """Every way's runs, and what they had in words."""
    budget, limits = f"{options.minutes:g} minutes each, everything included", {}
    if options.steps:
        counts = options.runs / "steps.json"  # timed once, so that a run that was stopped goes on
        if not counts.exists():
            options.runs.mkdir(parents=True, exist_ok=True)
            counts.write_text(json.dumps(equal_steps(options.ways, options.steps, options.set)))
        limits = json.loads(counts.read_text(encoding="utf-8"))
        told = ", ".join(f"{way} {count:,} of {1000 * each:.0f} ms" for way, (count, each) in limits.items())
        budget = f"steps that take one thread equally long ({told}), one classifier a seed"
    found: dict[str, list[dict[str, Any]]] = {way: [] for way in options.ways}
    for seed in options.seeds:
        for way, runs in found.items():
            limit = ["--set", f"train.max_steps={limits[way][0]}"] if limits else []
            flags = [
                *WAYS[way],
                *(limit or ["--minutes", str(options.minutes)]),
                "--set",
                f"train.seed={seed}",
            ]
            flags += [word for setting in options.set for word in ("--set", setting)]
            name = f"{options.steps}s" if limits else f"{options.minutes:g}"
            folder = options.runs / f"{way}-{name}-{seed}"
            runs.append(trained(options.data, folder, flags))
            print(way, seed, runs[-1], file=sys.stderr, flush=True)
    return found, budget


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path, help="A folder with MNIST's four files.")
    parser.add_argument("runs", type=Path)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=["attention"])
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="Settings of every run.")
    parser.add_argument("--name", default="gan", help="Of the file in results/.")
    parser.add_argument("--steps", type=int, help="In place of minutes: those of the first way.")
    parser.add_argument("--one", choices=WAYS, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(step_seconds([*WAYS[options.one], *options.set]))
        return
    found, budget = measured(options)
    last = found[options.ways[-1]][-1]
    real = [f"{last['real'][score]:.3f}" if score in last["real"] else "" for score in SCORES]
    write_report(
        options.name,
        "Drawing digits",
        [
            "attention",
            "steps",
            "classified as asked",
            "taught by drawings",
            *SCORES[2:-1],
            "Fréchet",
        ],
        [
            *(row(way, runs) for way, runs in found.items()),
            ["real test pictures in the place of drawings", "", *real],
        ],
        f"MNIST, {budget}, seeds {options.seeds}; 5,000 drawings beside 5,000 test pictures. Fréchet "
        "distance, coverage and the others are of the features of each folder's own classifier; no FID.",
    )


if __name__ == "__main__":
    main()
