"""How many steps a run needs before it translates, or writes: whole runs, each with its own schedule.

Multi30k English to German, every preset as it is, greedy validation BLEU at the end; with --text, a language
model of characters as `regard train --task language` makes it for a short run. Steps do not depend on the
machine's speed, so this may run beside other work. It found `NEEDED` of the tasks translation and language.

    python benchmarks/steps.py ../shared/data/multi30k --presets tiny small --steps 50 100 200 400
    python benchmarks/steps.py ../shared/data/multi30k --text ../shared/data/shakespeare/input.txt
"""

import argparse
import sys
import tempfile
from pathlib import Path

from report import write_report

from regard.presets import PRESETS
from regard.tasks.train import train


def bleu_after(data: Path, preset: str, steps: int, folder: Path) -> tuple[float, float]:
    """Validation loss and greedy BLEU of one run of `steps` steps."""
    files = {part: [data / f"{part}.{side}.gz" for side in ("en", "de")] for part in ("train", "val")}
    settings = {"train.max_steps": steps, "train.valid_every": 1_000_000}
    result = train(
        *files["train"], out=folder, valid=files["val"], preset=preset, overrides=settings, quiet=True
    )
    return result.scores["loss"], result.scores["bleu"]


def loss_after(text: Path, steps: int, folder: Path) -> float:
    """Validation loss per character of one run of `steps` steps."""
    settings = {"text.units": "characters", "train.max_steps": steps, "train.valid_every": 1_000_000}
    result = train(text, task="language", out=folder, overrides=settings, quiet=True)
    return result.scores["loss"]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("data", type=Path)
    parser.add_argument("--presets", nargs="+", default=["tiny", "small"], choices=list(PRESETS))
    parser.add_argument("--steps", nargs="+", type=int, default=[50, 100, 200, 400])
    parser.add_argument("--text", type=Path, help="running text, for a language model too")
    options = parser.parse_args()
    rows = []
    for preset in options.presets:
        for steps in options.steps:
            with tempfile.TemporaryDirectory() as folder:
                loss, bleu = bleu_after(options.data, preset, steps, Path(folder) / "model")
            rows.append([preset, f"{steps:,}", f"{loss:.2f}", f"{bleu:.1f}"])
            print(*rows[-1], file=sys.stderr, flush=True)
    for steps in options.steps if options.text else ():
        with tempfile.TemporaryDirectory() as folder:
            loss = loss_after(options.text, steps, Path(folder) / "model")
        rows.append(["language model of characters", f"{steps:,}", f"{loss:.2f}", ""])
        print(*rows[-1], file=sys.stderr, flush=True)
    write_report(
        "steps",
        "Steps until a model translates",
        ["preset", "steps of the whole run", "validation loss", "validation BLEU, greedy"],
        rows,
        "Multi30k English to German; every row is a run of its own, from warm-up to the end of its schedule."
        + (f" The language model: {options.text.parent.name}." if options.text else ""),
    )


if __name__ == "__main__":
    main()
