"""A distilled `deep` student (6+1 layers) against the `small` teacher (3+3): speed and BLEU on Multi30k.

One `regard distill`, which may be killed and repeated, then each measurement in its own process, teacher
and student in turn, medians: both without a shortlist, and both with theirs, which are written into the
folders. The test set is read once, after training.

    python benchmarks/distill.py TEACHER ../shared/data/multi30k --minutes 30 --out runs/deep
"""

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

from report import write_report

CASES = [(s, beam, batch) for s in (False, True) for batch in (1, 32) for beam in (1, 5)]  # s: shortlist
GOAL = "1.8x and at most 0.5 BLEU lost; aim 3x and none"


def regard(*words: str) -> str:
    """Run one `regard` command; its standard output."""
    command = [sys.executable, "-m", "regard", *words]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def files(options: argparse.Namespace, part: str) -> list[str]:
    """The two files of a part of Multi30k."""
    return [str(options.data / f"{part}.{side}.gz") for side in options.pair.split("-")]


def student(options: argparse.Namespace) -> None:
    """Distil it, or go on with it."""
    settings = [word for setting in options.set for word in ("--set", setting)]
    extra = ["--originals"] if options.originals else []
    regard(
        *("distill", "-m", str(options.teacher), *files(options, "train"), "-o", str(options.out)),
        *("--preset", "deep", "--minutes", str(options.minutes), "--valid", *files(options, "val")),
        *(*settings, *extra),
    )


def evaluate(options: argparse.Namespace, model: Path, case: tuple[bool, int, int]) -> dict[str, Any]:
    """Scores and speed of one model."""
    shortlist, beam, batch = case
    extra = ["--shortlist"] if shortlist else []
    test = files(options, "test_2016_flickr")
    found = regard(
        *("evaluate", "-m", str(model), *test, "--json"),
        *("--beam", str(beam), "--batch-size", str(batch), *extra),
    )
    return dict(json.loads(found))


def measure(options: argparse.Namespace, case: tuple[bool, int, int]) -> list[str]:
    """A row of the table."""
    models = {"teacher": options.teacher, "student": options.out}
    seconds: dict[str, list[float]] = {name: [] for name in models}
    scores = {}
    for _ in range(options.rounds):
        for name, model in models.items():
            found = evaluate(options, model, case)
            seconds[name].append(found["seconds"])
            scores[name] = found["bleu"]
    taken = {name: statistics.median(each) for name, each in seconds.items()}
    return [
        "yes" if case[0] else "no",
        *map(str, case[1:]),
        f"{taken['teacher']:.2f}",
        f"{taken['student']:.2f}",
        f"{taken['teacher'] / taken['student']:.2f}x",
        f"{scores['teacher']:.2f}",
        f"{scores['student']:.2f}",
        f"{scores['student'] - scores['teacher']:+.2f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("teacher", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--pair", default="en-de")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--set", action="append", default=[])
    parser.add_argument("--originals", action="store_true")
    options = parser.parse_args()
    student(options)
    for model in (options.teacher, options.out):
        regard("shortlist", "-m", str(model), *files(options, "train"))
    rows = [measure(options, case) for case in CASES]
    header = [
        "shortlist",
        "beam",
        "batch",
        "teacher s",
        "student s",
        "speed",
        "teacher BLEU",
        "student BLEU",
        "gained",
    ]
    note = (
        f"Seconds for the test set of 1,000 lines; {options.minutes:.0f} minutes of training. Goal: {GOAL}."
    )
    write_report("distill", "A distilled student against its teacher", header, rows, note)


if __name__ == "__main__":
    main()
