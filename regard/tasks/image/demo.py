"""`regard demo --task image`: a reader of letters, from the fonts that matplotlib ships.

Nothing is downloaded: glyphs are drawn, moved, turned and made noisy, and kept in an .npz.
After that it is what `regard train`, `regard evaluate` and `regard classify` do with anybody's pictures.
"""

import io
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from regard.atomic import write_bytes
from regard.data.pictures import Pictures
from regard.images.glyphs import LETTERS, glyphs
from regard.tasks.image import TASK
from regard.tasks.image.classifier import evaluation
from regard.tasks.image.figure import sheet
from regard.tasks.task import command
from regard.training.run import Asked
from regard.training.run import train as run
from regard.training.workspace import refuse_foreign

PICTURES, TESTED, SHOWN = 9300, 930, 32
SETTINGS: dict[str, Any] = {"image.flip": "never"}  # a mirrored letter is none


@dataclass(frozen=True)
class Options:
    """What the demo of pictures takes."""

    output: Path = Path("runs/demo-image")
    minutes: float = 1.6
    fresh: bool = False
    device: str | None = None


def write_glyphs(folder: Path, part: str, count: int, seed: int) -> Path:
    """An .npz of glyphs and their labels, made once."""
    path = folder / f"{part}.glyphs.npz"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        images, labels = zip(*glyphs(count, seed=seed), strict=True)
        held = io.BytesIO()
        np.savez(held, images=np.concatenate(images), labels=np.array(labels))
        write_bytes(path, held.getvalue())
    return path


def demo(options: Options, *, pictures: int = PICTURES, more: dict[str, Any] | None = None) -> None:
    """Draw glyphs, learn to read them, and show what it makes of others."""
    refuse_foreign(options.output)
    data = options.output / "data"
    train, test = write_glyphs(data, "train", pictures, 1), write_glyphs(data, "test", TESTED, 2)
    asked = Asked(
        options.output,
        overrides=SETTINGS | {"train.minutes": options.minutes} | (more or {}),
        fresh=options.fresh,
        device=options.device,
        origin=f"{len(LETTERS)} letters and digits in the fonts of matplotlib, drawn here",
    )
    run(TASK, TASK.read([train]), asked)
    classifier = TASK.load(options.output)
    found = evaluation(classifier, Pictures((test,)))
    accuracy = found.scores["accuracy"].value
    print(f"\n{accuracy:.1%} of {found.more['pictures']:,} glyphs that training never saw are read right")
    some = list(glyphs(SHOWN, seed=3))
    said = classifier.label([pixels for pixels, _ in some])
    titles = [
        label.name if label.name == right else f"!{label.name}, not {right}"
        for label, (_, right) in zip(said, some, strict=True)
    ]
    picture = options.output / "glyphs.png"
    write_bytes(picture, sheet([pixels for pixels, _ in some], titles))
    print(farewell(options.output, picture), flush=True)


def farewell(folder: Path, picture: Path) -> str:
    """The commands to go on with, as they can be typed here."""
    regard, place = command(), shlex.quote(str(folder))
    return "\n".join(
        (
            f"What it said of {SHOWN} of them: {picture}",
            "-" * 60,
            "Go on with:",
            f"  {regard} show {place}",
            f"  {regard} classify -m {place} --top 3 picture.png",
            f"  {regard} train --task image my_pictures/ -o runs/mine        # a folder a class",
        )
    )
