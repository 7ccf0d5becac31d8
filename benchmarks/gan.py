"""What a generator of digits is worth after so many minutes, with attention and without, in equal time.

The plain command on MNIST's training files, a run a seed and a way; then `regard evaluate` on the test files,
which training never saw: features and classifier are the folder's own, so no distance here is an FID. Real
test pictures stand in the last row. A run whose folder is finished is not trained again.

    python benchmarks/gan.py MNIST runs/gan --minutes 20 --seeds 1
    python benchmarks/gan.py MNIST runs/gan --minutes 10 --seeds 1 2 3 --ways attention none --name gan_ways
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from report import write_report

WAYS = {"attention": [], "none": ["--set", "gan.attend=0"]}
SCORES = ("classified", "taught", "coverage", "density", "precision", "recall", "frechet")
REGARD = [sys.executable, "-m", "regard"]


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


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path, help="A folder with MNIST's four files.")
    parser.add_argument("runs", type=Path)
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=["attention"])
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", help="Settings of every run.")
    parser.add_argument("--name", default="gan", help="Of the file in results/.")
    options = parser.parse_args()
    rows, last = [], None
    for way in options.ways:
        found = []
        for seed in options.seeds:
            flags = [*WAYS[way], "--minutes", str(options.minutes), "--set", f"train.seed={seed}"]
            flags += [word for setting in options.set for word in ("--set", setting)]
            folder = options.runs / f"{way}-{options.minutes:g}-{seed}"
            found.append(trained(options.data, folder, flags))
            print(way, seed, found[-1], file=sys.stderr, flush=True)
        rows.append(row(way, found))
        last = found[-1]
    assert last is not None
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
        [*rows, ["real test pictures in the place of drawings", "", *real]],
        f"MNIST, {options.minutes:g} minutes each, everything included, seeds {options.seeds}; 5,000 "
        "drawings beside 5,000 test pictures. Fréchet distance, coverage and the others are of the features "
        "of each folder's own classifier; no FID.",
    )


if __name__ == "__main__":
    main()
