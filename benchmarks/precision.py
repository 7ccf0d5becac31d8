"""What int8 costs in quality: BLEU of the same models in fp32 and in int8, beam 5, on their test sets.

Every model is given with its test set. `regard evaluate` scores it twice; only the difference counts, so
models that were trained for minutes do. It may run beside other work. A model that was measured before keeps
its row, so that models can be measured one by one.

    python benchmarks/precision.py runs/en-de test.en.gz test.de.gz [MODEL SRC REF ...]
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

from report import RESULTS, write_report

from regard.engine.path import path
from regard.process.kind import kind

HEADER = ["model", "shape", "path", "fp32", "int8", "lost"]


def bleu(model: Path, source: Path, reference: Path, precision: str) -> float:
    words = ["evaluate", "-m", model, source, reference, "--beam", "5", "--precision", precision, "--json"]
    command = [sys.executable, "-m", "regard", *map(str, words)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return float(json.loads(done.stdout)["bleu"])


def shape(model: Path) -> str:
    """Layers and width, as the folder's config says."""
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))["model"]
    return f"{config['encoder_layers']}+{config['decoder_layers']}, d {config['d_model']}"


def row_of(model: Path, source: Path, reference: Path) -> list[str]:
    whole, bytes_ = (bleu(model, source, reference, precision) for precision in ("fp32", "int8"))
    return [model.name, shape(model), path(), f"{whole:.2f}", f"{bytes_:.2f}", f"{whole - bytes_:+.2f}"]


def before() -> list[list[str]]:
    """The rows that this kind of machine has already."""
    page = RESULTS / "precision.md"
    if not page.exists():
        return []
    parts = page.read_text(encoding="utf-8").split("\n## ")
    lines = [line for part in parts if part.split("\n", 1)[0] == kind() for line in part.splitlines()]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in lines if line.startswith("| ")]
    return rows[2:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("given", nargs="+", type=Path, help="a model folder and its two files, in turn")
    given = parser.parse_args().given
    if len(given) % 3 != 0:
        parser.error("every model needs its two files")
    fresh = [row_of(*given[i : i + 3]) for i in range(0, len(given), 3)]
    named = {(row[0], row[2]) for row in fresh}
    rows = [row for row in before() if (row[0], row[2]) not in named] + fresh
    note = "BLEU, beam 5, the length penalty of the folder. Lost: fp32 less int8. Goal: 0.2 at most."
    write_report("precision", "BLEU lost by int8", HEADER, rows, note)


if __name__ == "__main__":
    main()
