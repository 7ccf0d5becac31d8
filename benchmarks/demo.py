"""The demo as a stranger sees it: seconds of the whole command, and how good it is on what it never saw.

python benchmarks/demo.py --to de fr --rounds 1
python benchmarks/demo.py --task speech --keep DIR       the model stays there
python benchmarks/demo.py --task pictures --keep DIR     image, detection and gan, one after the other
"""

import argparse
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from report import write_report


def run(folder: Path, *more: str) -> tuple[float, str]:
    """Seconds of one demo in a fresh folder, and what it printed."""
    start = time.perf_counter()
    command = [sys.executable, "-m", "regard", "demo", *more, "-o", str(folder)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    seconds = time.perf_counter() - start
    print(done.stdout)
    return seconds, done.stdout


def demo(to: str, folder: Path) -> list[str]:
    """A demo of translation: a row of the table."""
    seconds, said = run(folder, "--to", to)
    found = re.search(r"BLEU ([\d.]+).*exact match ([\d.]+%)", said)
    assert found, "the demo prints its scores"
    return [f"en to {to}", f"{seconds:.0f}", found[1], found[2]]


def speech(folder: Path) -> None:
    """The demo of speech: telephone keys."""
    seconds, said = run(folder, "--task", "speech")
    found = re.search(r"WER ([\d.]+%), CER ([\d.]+%) on ([\d,]+) recordings", said)
    assert found, "the demo prints its error rates"
    header = ["telephone calls", "seconds, everything", "WER", "CER"]
    rows = [[f"{found[3]} that training never heard", f"{seconds:.0f}", found[1], found[2]]]
    write_report("demo_speech", "`regard demo --task speech`", header, rows)


def pictures(folder: Path, note: str) -> None:
    """The three demos of pictures: what each says of itself."""
    rows = []
    for task in ("image", "detection", "gan"):
        seconds, said = run(folder / task, "--task", task)
        told = next(line for line in said.splitlines() if line)
        rows.append([task, f"{seconds:.0f}", told])
    header = ["task", "seconds, everything", "what it says"]
    write_report("demo_pictures", "`regard demo` of pictures", header, rows, note)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--to", nargs="+", default=["de"])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--task", choices=("translation", "speech", "pictures"), default="translation")
    parser.add_argument("--keep", type=Path, help="speech and pictures: a folder for the models")
    parser.add_argument("--note", default="", help="What else is to be known of these figures.")
    options = parser.parse_args()
    if options.task == "pictures":
        with tempfile.TemporaryDirectory() as folder:
            pictures(options.keep or Path(folder), options.note)
        return
    if options.task == "speech":
        with tempfile.TemporaryDirectory() as folder:
            speech(options.keep or Path(folder) / "demo")
        return
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
