"""Multi30k from two text files to a score: one plain `regard train`, then `regard evaluate`.

Raw cased text, test_2016, beam search, sacreBLEU 13a. Nothing is chosen on the test set: it is read
once, after training. Each run is kept as a line of `results/multi30k.jsonl`; the table is made of all of this
kind of machine.

    python benchmarks/multi30k.py ../shared/data/multi30k --minutes 15 --out runs/multi30k-15
"""

import argparse
import json
import time
from pathlib import Path
from typing import Any

from commands import regard, scores
from report import RESULTS, commit, kind, machine, write_report

RUNS = RESULTS / "multi30k.jsonl"
PEERS = [
    ["transformers MarianMTModel, same shape, fp32 (AVX-512 machine)", "en-de", "15", "", "", "7.0"],
    ["the same, bf16 autocast (AVX-512 machine)", "en-de", "15", "", "", "12.8"],
    ["3+3 layers, d256, from scratch (beamgrad, GPU)", "en-de", "", "", "", "36.99 ± .24"],
]
GOOD = 38.0


def minutes_until_good(out: Path) -> float | None:
    """Minutes of training until greedy BLEU on the held-out pairs that a run validates by was `GOOD`."""
    lines = map(json.loads, (out / "metrics.jsonl").read_text(encoding="utf-8").splitlines())
    return next((line["seconds"] / 60 for line in lines if line.get("valid_bleu", 0.0) >= GOOD), None)


def train_and_score(options: argparse.Namespace) -> dict[str, Any]:
    """One run: seconds of the whole training command, scores on validation and test set."""
    src, tgt = options.pair.split("-")
    data, out = options.data, str(options.out)
    files = {part: [str(data / f"{part}.{side}.gz") for side in (src, tgt)] for part in ("train", "val")}
    extra = [word for setting in options.set for word in ("--set", setting)]
    start = time.perf_counter()
    budget = ["--minutes", str(options.minutes)] if options.minutes else []
    regard("train", *files["train"], "--valid", *files["val"], "-o", out, *budget, *extra)
    seconds = time.perf_counter() - start
    found = {
        part: scores(options.out, *(data / f"{part}.{side}.gz" for side in (src, tgt)))
        for part in ("val", "test_2016_flickr")
    }
    return {
        "pair": options.pair,
        "minutes": options.minutes,
        "set": options.set,
        "seconds": round(seconds),
        "until_good": minutes_until_good(options.out),
        "val": found["val"]["bleu"],
        "test": found["test_2016_flickr"]["bleu"],
        "chrf": found["test_2016_flickr"]["chrf"],
        "signature": found["test_2016_flickr"]["signature"],
        "machine": machine(),
        "kind": kind(),
        "commit": commit(),
    }


def _command(run: dict[str, Any]) -> str:
    budget = [f"--minutes {run['minutes']:g}"] if run["minutes"] else []
    return f"`{' '.join(['regard train', *budget, *(f'--set {each}' for each in run['set'])])}`"


def table(runs: list[dict[str, Any]]) -> list[list[str]]:
    """A row a run, then the peers."""
    rows = [
        [
            _command(run) + f" ({run['commit']})",
            run["pair"],
            f"{run['seconds'] / 60:.1f}",
            f"{run['until_good']:.1f}" if run.get("until_good") else "",
            f"{run['val']:.2f}",
            f"{run['test']:.2f} (chrF {run['chrf']:.1f})",
        ]
        for run in runs
    ]
    return rows + PEERS


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("--minutes", type=float, default=0.0)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--pair", default="en-de")
    parser.add_argument("--set", action="append", default=[])
    run = train_and_score(parser.parse_args())
    RESULTS.mkdir(exist_ok=True)
    with RUNS.open("a", encoding="utf-8") as file:
        file.write(json.dumps(run) + "\n")
    every = [json.loads(line) for line in RUNS.read_text(encoding="utf-8").splitlines()]
    runs = [each for each in every if each["kind"] == run["kind"]]
    header = [
        "who",
        "pair",
        "minutes, everything",
        f"minutes until BLEU {GOOD:g} while training",
        "BLEU val",
        "BLEU test_2016",
    ]
    note = (
        "While training: greedy, on 200 held-out pairs. In the end: two threads, beam search, cased, "
        f"raw text. sacreBLEU signature: `{run['signature']}`."
    )
    write_report("multi30k", "Multi30k, from two text files to a score", header, table(runs), note)


if __name__ == "__main__":
    main()
