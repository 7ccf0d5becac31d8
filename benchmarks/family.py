"""The family side by side, as `regard compare` trains it; the command's own seconds are under the table.

python benchmarks/family.py
python benchmarks/family.py --name family_multi30k -- some.toml a.de a.en --test b.de b.en --minutes 20
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from report import write_report

from regard.compare.report import family_report
from regard.compare.trial import Outcome


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--name", default="family")
    parser.add_argument("-o", "--output", type=Path, help="keep the models here")
    parser.add_argument("arguments", nargs="*", help="what `regard compare` is given, after --")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        folder = options.output or Path(place) / "compare"
        held = [each for each in folder.glob("variants/*.json") if each.name != "terms.json"]
        command = [sys.executable, "-m", "regard", "compare", "-o", str(folder), "--json", *options.arguments]
        start = time.perf_counter()
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        seconds = time.perf_counter() - start
    facts = json.loads(done.stdout)
    text = family_report([Outcome(**each) for each in facts["variants"]])
    table, _, failures = text.partition("\n\n")
    header, _, *rows = [
        [cell.strip() for cell in line.strip("|").split(" | ")] for line in table.splitlines()
    ]
    terms = facts["terms"]
    settings = "".join(f", {key}={value}" for key, value in terms["settings"].items())
    note = (
        f"{terms['minutes']:g} minutes of training each, preset {terms['preset']}{settings}, seed 1 unless "
        f"set. The whole command took {seconds / 60:.1f} minutes"
        + (f"; {len(held)} of the variants were there before." if held else ".")
    )
    write_report(
        options.name, "The family side by side", header, rows, "\n\n".join(filter(None, (failures, note)))
    )


if __name__ == "__main__":
    main()
