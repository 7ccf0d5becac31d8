"""Folders, pickles and archives of strangers: what each costs until it is refused or loaded.

The cases are those of the tests (`tests/strangers.py`), which hold their memory to 300 MB; here the seconds
of the processor are told too. They are worked on in a child process, one after the other.

    python benchmarks/strangers.py
"""

import sys
import tempfile
from pathlib import Path

from report import write_report

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
import strangers
import strangers_packed
from strangers import Case, Outcome

from regard.data.corpus import Corpus
from regard.interop import marian
from regard.models import folder


def load(place: Path) -> None:
    folder.load_folder(place).tokenizer.encode_batch(["the cat sees"])


def check(place: Path) -> None:
    Corpus.of([place / "pairs.tsv.gz"]).check_files()


def row(what: str, outcomes: list[Outcome]) -> list[str]:
    """How many there were, how they ended, and the worst of them."""
    largest = max(outcomes, key=lambda each: each.megabytes)
    slowest = max(outcomes, key=lambda each: each.seconds)
    faults = sum(bool(each.error) and each.code != 2 for each in outcomes)
    refused = sum(each.code == 2 for each in outcomes)
    return [
        what,
        f"{len(outcomes)}, {refused} refused",
        str(faults),
        f"{largest.megabytes:.0f} ({largest.name[:40]})",
        f"{slowest.seconds:.2f} ({slowest.name[:40]})",
    ]


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        home = Path(name)
        ours, theirs = strangers.healthy(home / "ours"), strangers.marian(home / "theirs")
        texts = [
            Case(what, lambda place, data=data: (place / "pairs.tsv.gz").write_bytes(data))
            for what, data in strangers_packed.zipped_lines().items()
        ]
        sets = {
            "model folders": (strangers.folders(), ours, load),
            "pickled weights": (strangers_packed.pickles(), theirs, marian.read),
            "packed weights": (strangers_packed.packed_weights(), theirs, marian.read),
            "packed texts": (texts, theirs, check),
        }
        rows = []
        for what, (cases, base, work) in sets.items():
            outcomes, _ = strangers.bounded(cases, base, home / "copy", work)
            rows.append(row(what, outcomes))
    header = ["what", "cases", "other than loaded or exit code 2", "most MB", "most seconds of the processor"]
    write_report("strangers", "What strangers' files cost", header, rows, "The goals: 300 MB, 2 s, none.")


if __name__ == "__main__":
    main()
