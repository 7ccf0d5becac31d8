"""`regard look`, loaded model to file: seconds for one sentence, by the form that is written.

python benchmarks/look.py runs/multi30k "A sentence of about twenty words." --rounds 9
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from report import write_report

import regard


def seconds(translator: regard.Translator, text: str, path: Path) -> float:
    """From a loaded model to the file on disk."""
    start = time.perf_counter()
    regard.look(translator, text, vectors=path.suffix in (".html", ".json")).save(path)
    return time.perf_counter() - start


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path)
    parser.add_argument("text")
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    translator = regard.load(options.model)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for ending in (".html", ".json", ".svg", ".png", ".pharaoh"):
            path = Path(folder) / f"look{ending}"
            seconds(translator, options.text, path)
            taken = [seconds(translator, options.text, path) for _ in range(options.rounds)]
            size = f"{path.stat().st_size / 1e6:.2f}"
            rows.append([ending, f"{statistics.median(taken):.2f}", f"{max(taken):.2f}", size])
    words = len(options.text.split())
    header = ["form", "seconds, median", "seconds, longest", "MB"]
    note = f"A sentence of {words} words, beam {translator.decode.beam}, {options.rounds} rounds."
    write_report("look", "`regard look`: loaded model to file", header, rows, note)


if __name__ == "__main__":
    main()
