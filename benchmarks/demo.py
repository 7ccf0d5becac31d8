"""The demo as a stranger sees it: seconds of the whole command, and exact match on held-out phrases.

python benchmarks/demo.py --to de fr --rounds 1
"""

import argparse
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from report import write_report


def demo(to: str, folder: Path) -> list[str]:
    """One demo in a fresh folder: a row of the table."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "regard", "demo", "--to", to, "-o", str(folder)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    seconds = time.perf_counter() - start
    print(done.stdout)
    found = re.search(r"BLEU ([\d.]+).*exact match ([\d.]+%)", done.stdout)
    assert found, "the demo prints its scores"
    return [f"en to {to}", f"{seconds:.0f}", found[1], found[2]]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--to", nargs="+", default=["de"])
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    rows = []
    for number in range(options.rounds):
        for to in options.to:
            with tempfile.TemporaryDirectory() as folder:
                rows.append(demo(to, Path(folder) / f"demo-{to}-{number}"))
    header = ["phrasebook", "seconds, everything", "BLEU", "exact match"]
    write_report(
        "demo", "`regard demo`: held-out phrases", header, rows, "1,000 phrases that training never saw."
    )


if __name__ == "__main__":
    main()
