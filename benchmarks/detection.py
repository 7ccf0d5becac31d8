"""Finding objects: scenes of glyphs and BCCD in so many minutes, and what hints and the bias are worth.

Every run has the settings of `regard train --task detection` as they are; the test set is read once. `epochs`
trains on scenes with queries that are boxes, hints and the bias around boxes, and as a plain DETR with none
of them, and tells the first validation whose AP50 is 50. Both learn at a rate that does not fall, so that how
long a run is changes nothing before its end: ours has a third of the steps. A run whose folder is finished is
not trained again.

    python benchmarks/detection.py runs/detection --bccd ../shared/data/bccd --minutes scenes=10 bccd=45
    python benchmarks/detection.py runs/detection --only epochs --steps 1500
"""

import argparse
import json
from pathlib import Path
from typing import Any

from report import write_report

from regard.config import parse_set
from regard.tasks.detection.demo import write_scenes
from regard.tasks.task import task_named
from regard.training.run import Asked, train

SCENES, TESTED = 4000, 400
PLAIN = {"detection.anchors": False, "detection.centred": False, "detection.denoising": 0}
SHARE = 3  # of the steps of a plain DETR, one in so many
CHECKS = 40  # validations of a plain DETR


def trained(name: str, data: Path, test: Path, folder: Path, overrides: dict[str, Any]) -> list[str]:
    """One run and its scores, as a row."""
    task = task_named("detection")
    if not (folder / "model.safetensors").exists():
        train(task, task.read([data]), Asked(folder, overrides=overrides))
    last = json.loads((folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()[-1])
    found = task.evaluate(folder, [test])
    return [
        name,
        f"{last['seconds'] / 60:.1f} min, {last['step']:,} steps, {last['epoch']:.1f} epochs",
        *(f"{100 * found.scores[score].value:.1f}" for score in ("ap50", "ap", "ap75")),
    ]


def first_fifty(folder: Path) -> str:
    """The epoch of the first validation whose AP50 was at least 0.5."""
    text = (folder / "metrics.jsonl").read_text(encoding="utf-8")
    lines = [json.loads(line) for line in text.splitlines()]
    last = lines[-1]["epoch"]
    good = [line["epoch"] for line in lines if line.get("valid_ap50", 0) >= 0.5]
    return f"AP50 50 after {good[0]:.2f} epochs" if good else f"AP50 50 not within {last:.2f} epochs"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("runs", type=Path)
    parser.add_argument("--bccd", type=Path)
    parser.add_argument("--minutes", nargs="+", default=[], metavar="SET=MINUTES")
    parser.add_argument("--steps", type=int, default=1500, help="Of the plain run of epochs.")
    parser.add_argument("--only", nargs="+", default=["scenes", "bccd", "epochs"])
    parser.add_argument("--set", nargs="+", default=[], metavar="KEY=VALUE", dest="overrides")
    parser.add_argument("--note", default="", help="What else is to be known of these figures.")
    options = parser.parse_args()
    more = dict(parse_set(text) for text in options.overrides)
    minutes = {"scenes": 10.0, "bccd": 45.0} | {
        k: float(v) for k, v in (each.split("=") for each in options.minutes)
    }
    rows: list[list[str]] = []
    notes = [options.note]
    data = test = options.runs
    if {"scenes", "epochs"} & set(options.only):
        data = write_scenes(options.runs / "data" / "train", SCENES, 1)
        test = write_scenes(options.runs / "data" / "test", TESTED, 2)
    signs: dict[str, Any] = {"detection.flip": "never"}
    if "scenes" in options.only:
        asked = signs | {"train.minutes": minutes["scenes"]} | more
        rows.append(trained("scenes of glyphs", data, test, options.runs / "scenes", asked))
    if "bccd" in options.only and options.bccd:
        asked = {"train.minutes": minutes["bccd"]} | more
        rows.append(trained("BCCD", options.bccd, options.bccd, options.runs / "bccd", asked))
    if "epochs" in options.only:
        always = signs | {
            "train.schedule": "constant",
            "train.valid_every": max(1, options.steps // CHECKS),
        }
        for name, change, steps in (
            ("with boxes, hints and bias", {}, options.steps // SHARE),
            ("plain", PLAIN, options.steps),
        ):
            folder = options.runs / f"epochs-{name.split()[0]}"
            asked = always | {"train.max_steps": steps} | change | more
            rows.append(trained(f"scenes, {name}", data, test, folder, asked))
            notes.append(f"Scenes, {name}: {first_fifty(folder)}.")
    write_report(
        "_".join(["detection", *options.only]),  # a file each: one part does not take another's place
        "Finding objects",
        ["what", "how", "AP50", "AP", "AP75"],
        rows,
        " ".join(filter(None, notes)),
    )


if __name__ == "__main__":
    main()
