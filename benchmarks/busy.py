"""A busy machine costs its share: training and translating beside a foreign process that keeps one core busy.

The very commands, `regard train` (tiny, Multi30k) and `regard evaluate` with either decoder, on a quiet
machine and then beside a process of another session that is always busy, in turn. Of two cores half is fair.

    python benchmarks/busy.py ../shared/data/multi30k --rounds 5
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

from report import write_report

from regard.compare.trial import training_speed
from regard.training.metrics import METRICS, read_metrics

BUSY = """
import sys
if sys.argv[1]:
    open("/proc/self/autogroup", "w").write(sys.argv[1])
while True:
    pass
"""
WORK = ("training", "translating", "translating, readable decoder")


def standing() -> str:
    """The nice value of this session, where the kernel groups processes by session; empty where not."""
    group = Path("/proc/self/autogroup")
    return group.read_text(encoding="ascii").split()[-1] if group.exists() else ""


@contextmanager
def neighbour() -> Iterator[None]:
    """A process of another session, with the same claim to the cores as this one, that is always busy."""
    process = subprocess.Popen([sys.executable, "-c", BUSY, standing()], start_new_session=True)
    try:
        yield
    finally:
        process.kill()
        process.wait()


def regard(*words: object) -> str:
    command = [sys.executable, "-m", "regard", *map(str, words)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def train(data: Path, folder: Path, steps: int, *flags: str) -> float:
    """Target tokens a second of a short run, as metrics.jsonl tells them."""
    files = [data / f"train.{side}.gz" for side in ("en", "de")]
    settings = ["--set", f"train.max_steps={steps}", "--set", "train.valid_every=1000000"]
    regard("train", *files, "-o", folder, "--fresh", *settings, *(flags or ("--preset", "tiny")))
    speed = training_speed(read_metrics(folder / METRICS))
    assert speed is not None
    return speed


def translate(data: Path, folder: Path, *flags: str) -> float:
    """Target tokens a second of the test set."""
    files = [data / f"test_2016_flickr.{side}.gz" for side in ("en", "de")]
    return float(json.loads(regard("evaluate", "-m", folder, *files, *flags, "--json"))["tokens_per_second"])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=60)
    options = parser.parse_args()
    speeds: dict[tuple[str, bool], list[float]] = {}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place) / "model"
        for _ in range(options.rounds):
            for busy in (False, True):
                with neighbour() if busy else nullcontext():
                    found = (
                        train(options.data, folder, options.steps),
                        translate(options.data, folder),
                        translate(options.data, folder, "--engine", "readable", "--beam", "1"),
                    )
                for work, speed in zip(WORK, found, strict=True):
                    speeds.setdefault((work, busy), []).append(speed)
                print("busy" if busy else "quiet", *map(round, found), file=sys.stderr, flush=True)
    rows = []
    for work in WORK:
        quiet, beside = (statistics.median(speeds[work, busy]) for busy in (False, True))
        rows.append([work, f"{quiet:,.0f}", f"{beside:,.0f}", f"{beside / quiet:.0%}"])
    write_report(
        "busy",
        "Beside a foreign process that keeps one core busy",
        ["work", "quiet, tokens/s", "beside it, tokens/s", "kept"],
        rows,
        f"{options.rounds} rounds in turn, medians. {options.steps} steps of preset tiny; then the test set, "
        "by beam 5 in the engine, greedily by the readable decoder.",
    )


if __name__ == "__main__":
    main()
