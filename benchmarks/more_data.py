"""What more data gives on Multi30k: back-translation, and several languages in one model. BLEU on test_2016.

Back-translation: half of the English-German pairs, and the German side of the other half as text that nobody
translated. Beside it the half alone, and all pairs, which is what it could reach at most. Several languages:
one model for English with German, French and Czech, both ways, against a model for each direction; the one
has as many minutes as six would have together. Every run is one `regard` command: killed, the same goes on.

    python benchmarks/more_data.py ../shared/data/multi30k --out runs/more --minutes 15
    python benchmarks/more_data.py ../shared/data/multi30k --out runs/back --what back --minutes 4
    python benchmarks/more_data.py ../shared/data/multi30k --out runs/six --what several --minutes 2 --alone
"""

import argparse
import gzip
import json
from itertools import islice
from pathlib import Path
from typing import Any

from commands import regard, scores
from report import write_report

TEST = "test_2016_flickr"
DIRECTIONS = ("en-de", "en-fr", "en-cs", "de-en", "fr-en", "cs-en")
ZERO_SHOT = ("de-fr", "fr-cs")


def sides(options: argparse.Namespace, part: str, pair: str) -> list[Path]:
    """The two files of a pair of languages: of Multi30k, or what was cut from it."""
    if options.lines and part == "train":
        return [cut(options, part, code, 0, options.lines) for code in pair.split("-")]
    return [options.data / f"{part}.{code}.gz" for code in pair.split("-")]


def cut(options: argparse.Namespace, part: str, code: str, first: int, last: int | None) -> Path:
    """Some lines of a file as a file of its own."""
    path: Path = options.out / f"{part}.{first}-{last or 'end'}.{code}"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with gzip.open(options.data / f"{part}.{code}.gz", "rt", encoding="utf-8") as file:
            path.write_text("".join(islice(file, first, last)), encoding="utf-8")
    return path


def tested(options: argparse.Namespace, model: Path, pair: str) -> dict[str, Any]:
    """Scores of the test set."""
    several = json.loads((model / "config.json").read_text())["text"]["pairs"]
    codes = pair.split("-")
    named = ("--from", codes[0], "--to", codes[1]) if several else ()
    return scores(model, *sides(options, TEST, pair), *named)


def row(name: str, pair: str, minutes: str, found: dict[str, Any]) -> list[str]:
    """A line of the table."""
    return [name, pair, minutes, f"{found['bleu']:.2f}", f"{found['chrf']:.2f}"]


def back(options: argparse.Namespace) -> list[list[str]]:
    """Half of the pairs; those with back-translation; all of them."""
    pair, half = "en-de", (options.lines or 29_000) // 2
    pairs = [cut(options, "train", code, 0, half) for code in pair.split("-")]
    mono = cut(options, "train", "de", half, options.lines)
    common = (*options.settings, "--minutes", options.minutes, "--valid", *sides(options, "val", pair))
    models = {name: options.out / name for name in ("half", "back", "all")}
    regard("train", *pairs, "-o", models["half"], *common)
    regard("backtranslate", *pairs, "--mono", mono, "-o", models["back"], *common)
    regard("train", *sides(options, "train", pair), "-o", models["all"], *common)
    told = {
        "half": "half of the pairs",
        "back": "the same, and the other half's target, back-translated",
        "all": "all pairs",
    }
    spent = {"back": f"{options.minutes:g} + {options.minutes:g} for the reverse model"}
    return [
        row(told[name], pair, spent.get(name, f"{options.minutes:g}"), tested(options, model, pair))
        for name, model in models.items()
    ]


def several(options: argparse.Namespace) -> list[list[str]]:
    """One model for all directions, and one for each, in the same time together."""
    rows = []
    for pair in options.alone:
        model = options.out / pair
        valid = sides(options, "val", pair)
        common = (*options.settings, "--minutes", options.minutes)
        regard("train", *sides(options, "train", pair), "-o", model, *common, "--valid", *valid)
        rows.append(row("a model of its own", pair, f"{options.minutes:g}", tested(options, model, pair)))
    model, minutes = options.out / "several", options.minutes * len(DIRECTIONS)
    named = [word for pair in DIRECTIONS for word in ("--pair", pair, *sides(options, "train", pair))]
    named += [word for pair in DIRECTIONS for word in ("--valid-pair", pair, *sides(options, "val", pair))]
    regard("train", *named, "-o", model, *options.settings, "--minutes", minutes)
    for pair in DIRECTIONS:
        rows.append(row("one model for all", pair, f"{minutes:g} for all", tested(options, model, pair)))
    for pair in ZERO_SHOT:
        rows.append(row("the same, zero-shot", pair, "none", tested(options, model, pair)))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path, help="the folder of Multi30k")
    parser.add_argument("--out", type=Path, required=True, help="where the models go, and stay")
    parser.add_argument("--minutes", type=float, default=15.0, help="for each direction")
    parser.add_argument("--what", choices=("back", "several", "both"), default="both")
    parser.add_argument("--alone", nargs="*", default=DIRECTIONS, help="directions with a model of their own")
    parser.add_argument("--lines", type=int, help="only so many pairs, to try this script")
    parser.add_argument("--set", action="append", default=[], help="a setting of every run")
    options = parser.parse_args()
    options.settings = [word for setting in options.set for word in ("--set", setting)]
    rows = back(options) if options.what != "several" else []
    rows += several(options) if options.what != "back" else []
    note = f"{options.lines or 29_000:,} pairs; beam and engine as `regard evaluate` has them."
    name = "more_data" if options.what == "both" else f"more_data_{options.what}"
    header = ["trained on", "direction", "minutes", "BLEU", "chrF"]
    write_report(name, "More data on Multi30k", header, rows, note)


if __name__ == "__main__":
    main()
