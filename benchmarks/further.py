"""Training further: on pairs that the model has seen, on a new domain, and on the new mixed with the old.

BLEU on the test sets of both domains, before and after. The model was trained on Multi30k, English to German.
Seen: 2,000 of its own pairs, for a minute. New: Tatoeba, turned round. Mixed: both, half of an epoch each.
Every run is one `regard train --from`: killed, the same goes on.

    python benchmarks/further.py ../shared/data/multi30k ../shared/data/tatoeba --model runs/m30 --out runs/on
"""

import argparse
import gzip
from itertools import islice
from pathlib import Path

from commands import scores, trained
from report import write_report

SIDES = ("en", "de")
SEEN = 2000


def files(folder: Path, part: str) -> list[Path]:
    return [folder / f"{part}.{side}.gz" for side in SIDES]


def seen(old: Path, out: Path) -> list[Path]:
    """The first pairs of the old data, as files of their own."""
    found = []
    for path in files(old, "train"):
        found.append(out / path.name.removesuffix(".gz"))
        with gzip.open(path, "rt", encoding="utf-8") as file:
            found[-1].write_text("".join(islice(file, SEEN)), encoding="utf-8")
    return found


def row(name: str, minutes: str, model: Path, options: argparse.Namespace) -> list[str]:
    """BLEU in both domains."""
    bleu = [
        scores(model, *files(options.old, "test_2016_flickr"))["bleu"],
        scores(model, *files(options.new, "test"))["bleu"],
    ]
    return [name, minutes, *(f"{each:.2f}" for each in bleu)]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("old", type=Path, help="the folder of Multi30k")
    parser.add_argument("new", type=Path, help="the folder of Tatoeba")
    parser.add_argument("--model", type=Path, required=True, help="trained on the old data")
    parser.add_argument("--minutes", type=float, default=5.0, help="for the new domain, alone and mixed")
    parser.add_argument("--seen-minutes", type=float, default=1.0)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    old, new = files(options.old, "train"), files(options.new, "train")
    both = [f"{fresh},{known}" for fresh, known in zip(new, old, strict=True)]
    runs = {
        f"{SEEN:,} pairs that it had seen": (seen(options.old, options.out), options.seen_minutes, "seen"),
        "the new domain alone": (new, options.minutes, "new"),
        "new and old, half and half": ([*both, "--set", "data.weights=1,1"], options.minutes, "mixed"),
    }
    rows = [[*row("the model, before", "", options.model, options), ""]]
    for name, (given, minutes, folder) in runs.items():
        model = options.out / folder
        told = trained(*given, "-o", model, "--from", options.model, "--minutes", minutes)
        kept = "what was learned" if told.better else "the model as it was"
        rows.append([*row(name, f"{minutes:g}", model, options), kept])
    header = ["trained further on", "minutes", "BLEU Multi30k test_2016", "BLEU Tatoeba test", "kept"]
    note = "English to German, beam and engine as `regard evaluate` has them."
    write_report("further", "Training a model further", header, rows, note)


if __name__ == "__main__":
    main()
