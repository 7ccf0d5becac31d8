"""`auto` against what it chooses from: the same short run with the precision left to `regard train`, and set.

Every run is a `regard train` of its own, in turn; target tokens a second as metrics.jsonl tells them, so
what choosing costs is not in them: that is seconds, once.

    python benchmarks/auto.py ../shared/data/multi30k --rounds 5
"""

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from busy import train
from report import write_report

WAYS = ("auto", "fp32", "bf16")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("--preset", default="tiny")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=60)
    options = parser.parse_args()
    speeds: dict[str, list[float]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory() as place:
        for _ in range(options.rounds):
            for way in WAYS:
                folder = Path(place) / way
                settings = ("--preset", options.preset, "--set", f"train.precision={way}")
                speeds[way].append(train(options.data, folder, options.steps, *settings))
                print(way, round(speeds[way][-1]), file=sys.stderr, flush=True)
    medians = {way: statistics.median(found) for way, found in speeds.items()}
    better = max(medians["fp32"], medians["bf16"])
    write_report(
        "auto",
        "`train.precision=auto` against the better one",
        ["train.precision", "tokens/s (median)", "against the better one"],
        [[way, f"{speed:,.0f}", f"{speed / better:.2f}"] for way, speed in medians.items()],
        f"Preset {options.preset}, {options.steps} steps, {options.rounds} rounds in turn.",
    )


if __name__ == "__main__":
    main()
