"""Peak memory of `regard train` on a large corpus, above what the same model takes on a small one.

Both runs train the small preset for a few steps with the same vocabulary size and batches; what the large
one takes more is what the corpus costs: reading, learning the vocabulary, tokenising, the store, the order.

    python benchmarks/memory.py --pairs 1000000
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

from report import write_report

from regard.text.phrasebook import phrases

SMALL = 20_000
STEPS = 5


def write_corpus(path: Path, pairs: int) -> None:
    """Phrases as TSV; they are numbered after the first SMALL, so that no two are the same."""
    base = list(islice(phrases("de"), SMALL))
    with path.open("w", encoding="utf-8") as file:
        for number in range(pairs):
            src, tgt = base[number % SMALL]
            mark = f" ({number})" if number >= SMALL else ""
            file.write(f"{src}{mark}\t{tgt}{mark}\n")


def peak(corpus: Path, out: Path) -> tuple[float, float]:
    """Peak resident memory in MB and seconds of one training command."""
    steps = ["--set", f"train.max_steps={STEPS}", "--set", "text.vocab_size=1500"]
    command = [sys.executable, "-m", "regard", "train", str(corpus), "-o", str(out), *steps]
    command += ["--preset", "small"]
    start = time.perf_counter()
    process = subprocess.Popen(command)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"training ended with status {status}")
    return usage.ru_maxrss / 1024, time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pairs", type=int, default=1_000_000)
    options = parser.parse_args()
    rows, peaks = [], []
    with tempfile.TemporaryDirectory() as folder:
        for pairs in (SMALL, options.pairs):
            corpus = Path(folder) / f"{pairs}.tsv"
            write_corpus(corpus, pairs)
            megabytes, seconds = peak(corpus, Path(folder) / f"model-{pairs}")
            peaks.append(megabytes)
            rows.append([f"{pairs:,}", f"{megabytes:,.0f}", f"{seconds:.0f}"])
    rows.append(["the large corpus above the small one", f"{peaks[1] - peaks[0]:,.0f}", ""])
    write_report(
        "memory",
        "Peak memory of `regard train`",
        ["pairs", "peak resident MB", "seconds"],
        rows,
        f"Small preset, {STEPS} steps. Resident memory counts the pages of the mapped store that were read.",
    )


if __name__ == "__main__":
    main()
