"""Characters of Shakespeare: the validation loss that `regard train` reaches in so many minutes.

The plain command, the last tenth held out, all of it measured, no sliding window; then the same by `regard
evaluate` on that tenth as a file of its own.

    python benchmarks/shakespeare.py ../shared/data/shakespeare/input.txt --minutes 3
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from report import write_report


def run(text: Path, minutes: float, folder: Path) -> list[str]:
    """One row of the table."""
    letters = text.read_text(encoding="utf-8")
    held = folder / "held.txt"
    held.write_text(letters[int(0.9 * len(letters)) :], encoding="utf-8")
    regard = [sys.executable, "-m", "regard"]
    flags = ["--task", "language", "--set", "text.units=characters", "--minutes", str(minutes)]
    model = str(folder / "model")
    subprocess.run([*regard, "train", str(text), "-o", model, *flags], check=True)
    found = subprocess.run(
        [*regard, "evaluate", "-m", model, str(held), "--json"], check=True, capture_output=True, text=True
    )
    scores = json.loads(found.stdout)
    result = json.loads((folder / "model" / "checkpoints" / "run.json").read_text(encoding="utf-8"))["result"]
    return [
        f"{minutes:g}",
        f"{result['steps']:,}",
        f"{result['epochs']:.1f}",
        f"{scores['loss']:.4f}",
        f"{scores['bits_per_byte']:.4f}",
    ]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("text", type=Path)
    parser.add_argument("--minutes", type=float, nargs="+", default=[3.0])
    options = parser.parse_args()
    rows = []
    for minutes in options.minutes:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(run(options.text, minutes, Path(folder)))
    write_report(
        "shakespeare",
        "Characters of Shakespeare, validation loss by minutes",
        ["minutes", "steps", "epochs", "loss, nats a character", "bits per byte"],
        rows,
        "everything included; the last tenth of the text held out, all of it measured",
    )


if __name__ == "__main__":
    main()
