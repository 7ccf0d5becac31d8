"""Larger data than captions: one plain `regard train`, then its own test set, and FLORES from another world.

The folder holds `train`, `valid` and `test`, as those of Tatoeba and Europarl do. Nothing is chosen on a test
set. What the run foresaw before its first step stands beside what came. Killed, the same command goes on, and
foresees the rest.

    python benchmarks/larger.py ../shared/data/tatoeba ../shared/data/flores --minutes 60 --out runs/tatoeba
    python benchmarks/larger.py ../shared/data/europarl ../shared/data/flores --minutes 180 --out runs/debates
"""

import argparse
from pathlib import Path

from commands import Told, scores, trained
from report import write_report

from regard.training.metrics import METRICS, read_metrics


def sides(folder: Path, part: str, pair: str, end: str = ".gz") -> list[Path]:
    """The two files of a part."""
    return [folder / f"{part}.{code}{end}" for code in pair.split("-")]


def figures(told: Told, folder: Path) -> list[list[str]]:
    """Time, memory, and what was foreseen beside what came."""
    last = read_metrics(folder / METRICS)[-1]
    steps, epochs = told.ahead or (0, 0.0)
    foreseen = f"{steps:,} ({last['step'] / steps - 1:+.1%})" if steps else ""
    return [
        ["minutes, everything included", f"{told.seconds / 60:.1f}", ""],
        ["most resident memory, MB", f"{told.megabytes:,.0f}", ""],
        ["steps", f"{last['step']:,}", foreseen],
        ["epochs", f"{last['epoch']:.1f}", f"{epochs:.1f}" if steps else ""],
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="a folder with train, valid and test")
    parser.add_argument("flores", type=Path, help="the folder of FLORES")
    parser.add_argument("--pair", default="de-en")
    parser.add_argument("--minutes", type=float, required=True)
    parser.add_argument("--preset", help="another one than the command takes by itself")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    pair, model, data = options.pair, options.out, options.data
    asked = ["--preset", options.preset] if options.preset else []
    train, valid = sides(data, "train", pair), sides(data, "valid", pair)
    told = trained(*train, "--valid", *valid, "-o", model, "--minutes", options.minutes, *asked)
    rows = figures(told, model)
    tests = {
        "validation set": valid,
        "test set": sides(data, "test", pair),
        "FLORES test": sides(options.flores, "flores-test", pair, ""),
    }
    for name, files in tests.items():
        found = scores(model, *files)
        rows.append([f"{name}: BLEU, chrF", f"{found['bleu']:.2f}, {found['chrf']:.2f}", ""])
    name = "_".join(["larger", data.resolve().name, *([options.preset] if options.preset else [])])
    note = (
        f"{pair}, beam and engine as `regard evaluate` has them. sacreBLEU signature: `{found['signature']}`."
    )
    write_report(name, f"{data.resolve().name}, one plain command", ["what", "", "foreseen"], rows, note)


if __name__ == "__main__":
    main()
