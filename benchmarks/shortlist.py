"""With a shortlist against without: lines a second at batch 1, BLEU, and how long the lists are.

Each measurement is a process of its own, the two ways take turns, medians count. The list is learned from
the training pairs, into a copy of the folder. With `--rows 32000` a second copy is measured too, whose
output layer has that many columns, as a larger vocabulary has; those that are new belong to no token.

    python benchmarks/shortlist.py MODEL ../shared/data/multi30k --rounds 5 --rows 32000
"""

import argparse
import gzip
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from report import write_report

BEAMS = (1, 5)
GOAL = "1.15x, aim 1.4x; at most 0.2 BLEU lost"


def lines_of(path: Path) -> list[str]:
    """A gzip file of lines."""
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
        return file.read().splitlines()


def one(options: argparse.Namespace) -> None:
    """Lines a second of one way, after a warm-up; one JSON object."""
    import torch

    from regard.tasks.translation.load import load_translator

    torch.set_num_threads(options.threads)
    translator = load_translator(options.model, shortlist=options.one == "with")
    lines = lines_of(options.data / f"test_2016_flickr.{options.pair.split('-')[0]}.gz")
    for line in lines[:100]:
        translator.translate([line], beam=options.beam, batch_size=1)
    began = time.perf_counter()
    for line in lines:
        translator.translate([line], beam=options.beam, batch_size=1)
    print(json.dumps({"speed": len(lines) / (time.perf_counter() - began)}))


def measure(options: argparse.Namespace, way: str, beam: int) -> float:
    """One process."""
    words = [str(options.model), str(options.data), "--one", way, "--beam", str(beam)]
    command = [sys.executable, __file__, *words, "--pair", options.pair, "--threads", str(options.threads)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return float(json.loads(done.stdout)["speed"])


def bleu(options: argparse.Namespace, beam: int, *extra: str) -> float:
    """On the whole test set."""
    pair = [str(options.data / f"test_2016_flickr.{side}.gz") for side in options.pair.split("-")]
    command = [sys.executable, "-m", "regard", "evaluate", "-m", str(options.model), *pair, "--json"]
    done = subprocess.run([*command, "--beam", str(beam), *extra], check=True, capture_output=True, text=True)
    return float(json.loads(done.stdout)["bleu"])


def widths(options: argparse.Namespace) -> tuple[float, int]:
    """Columns of the output layer: with the shortlist on average, and without."""
    from regard.engine.shortlist import Shortlist
    from regard.tasks.translation.translator import load_readable

    tokenizer = load_readable(options.model).tokenizer
    short = Shortlist.load(options.model, tokenizer)
    sources = tokenizer.encode_batch(
        lines_of(options.data / f"test_2016_flickr.{options.pair.split('-')[0]}.gz")
    )
    own = statistics.mean(len(short.of([*ids, tokenizer.end_id])) for ids in sources)
    return len(short.always) + own, short.size


def grow(model: Path, rows: int) -> None:
    """Give the model in a folder that many rows of embeddings and columns of output."""
    import torch

    from regard.config import merge
    from regard.models import build, folder

    held = folder.load_folder(model)
    config = merge(held.config, {"model.vocab_size": rows})
    wide, old = build(config), held.model.state_dict()
    with torch.no_grad():
        for name, tensor in wide.state_dict().items():
            tensor[: len(old[name])] = old[name]
    folder.save(model, config=config, model=wide, tokenizer=held.tokenizer, card="")


def table(options: argparse.Namespace, narrow: float, wide: int) -> list[list[str]]:
    """The rows of one model, whose output layer is so wide with the shortlist on average, and without."""
    rows = []
    for beam in BEAMS:
        speeds: dict[str, list[float]] = {"without": [], "with": []}
        for _ in range(options.rounds):
            for way, found in speeds.items():
                found.append(measure(options, way, beam))
        without, with_ = (statistics.median(found) for found in speeds.values())
        scores = bleu(options, beam), bleu(options, beam, "--shortlist")
        rows.append(
            [
                f"{wide:,}",
                f"{narrow:,.0f}",
                str(beam),
                f"{without:.1f}",
                f"{with_:.1f}",
                f"{with_ / without:.2f}x",
                f"{scores[0]:.2f}",
                f"{scores[1]:.2f}",
            ]
        )
    return rows


def compare(options: argparse.Namespace) -> None:
    """The whole table."""
    pairs = [str(options.data / f"train.{side}.gz") for side in options.pair.split("-")]
    subprocess.run(
        [sys.executable, "-m", "regard", "shortlist", "-m", str(options.model), *pairs], check=True
    )
    narrow, wide = widths(options)
    rows = table(options, narrow, wide)
    if options.rows:
        grow(options.model, options.rows)
        rows += table(options, narrow, options.rows)
    note = f"Widths on average. Batch 1, {options.threads} threads. Goal: {GOAL}."
    header = ["columns", "with", "beam", "lines/s without", "lines/s with", "speed"]
    write_report("shortlist", "A lexical shortlist", [*header, "BLEU without", "BLEU with"], rows, note)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--pair", default="en-de")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rows", type=int, default=0, help="a second model with an output layer so wide")
    parser.add_argument("--one", choices=("with", "without"), help=argparse.SUPPRESS)
    parser.add_argument("--beam", type=int, default=1, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        one(options)
        return
    with tempfile.TemporaryDirectory() as place:
        options.model = Path(shutil.copytree(options.model, Path(place) / options.model.name))
        compare(options)


if __name__ == "__main__":
    main()
