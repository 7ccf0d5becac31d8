"""Sentence vectors against people: STS-B, whose pairs of sentences were given a similarity of 0 to 5.

Real weights are imported, every sentence becomes a vector, and the cosines are put beside the people's
numbers by Spearman's rank correlation, in fp32 and in int8. The published figure of each model stands beside
ours. No time is measured.

    python benchmarks/sts.py ../shared/data/stsb --model minilm-l6 FOLDER --model gte-small FOLDER
"""

import argparse
import csv
import sys
import tempfile
from pathlib import Path

import numpy as np
from report import write_report

import regard
from regard.interop import known
from regard.models.folder import save
from regard.tasks.embed.embedder import cosines

PUBLISHED = {"minilm-l6": 0.8203, "gte-small": 0.8557}


def ranks(values: np.ndarray) -> np.ndarray:
    """1, 2, 3, ...; equal values share the mean of theirs."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return ((last - counts + 1 + last) / 2)[which]


def spearman(one: np.ndarray, other: np.ndarray) -> float:
    """The correlation of the ranks."""
    return float(np.corrcoef(ranks(one), ranks(other))[0, 1])


def pairs(path: Path) -> tuple[list[str], list[str], np.ndarray]:
    """Two sentences and a number, row by row."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.reader(file))
    return [row[0] for row in rows], [row[1] for row in rows], np.array([float(row[2]) for row in rows])


def correlations(folder: Path, data: Path, precision: str) -> list[float]:
    """Of a foreign folder on dev and test, through a model folder of ours."""
    found = []
    with tempfile.TemporaryDirectory() as place:
        loaded = known.read(folder)
        save(Path(place), config=loaded.config, model=loaded.model, tokenizer=loaded.tokenizer, card="")
        embedder = regard.load(place, precision=precision)
        for part in ("dev", "test"):
            one, other, wanted = pairs(data / f"stsb-en-{part}.csv")
            found.append(spearman(cosines(embedder.embed(one), embedder.embed(other)), wanted))
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument(
        "--model", nargs=2, action="append", required=True, dest="models", metavar=("NAME", "FOLDER")
    )
    options = parser.parse_args()
    rows = []
    for name, folder in options.models:
        for precision in ("fp32", "int8"):
            dev, test = correlations(Path(folder), options.data, precision)
            published = f"{PUBLISHED[name]:.4f}" if name in PUBLISHED else ""
            rows.append([name, precision, f"{dev:.4f}", f"{test:.4f}", published])
            print(*rows[-1], file=sys.stderr, flush=True)
    write_report(
        "sts",
        "Similarity of sentences",
        ["model", "precision", "STS-B dev, Spearman", "STS-B test, Spearman", "published (test)"],
        rows,
        "English STS-B, 1,500 and 1,379 pairs; cosine of the two vectors, by the native engine.",
    )


if __name__ == "__main__":
    main()
