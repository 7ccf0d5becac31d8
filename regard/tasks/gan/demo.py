"""`regard demo --task gan`: digits in the fonts of matplotlib, and a generator that learns to draw them.

Nothing is downloaded. After the digits are drawn and put into a file it is what `regard train`, `regard draw`
and `regard look` do with anybody's pictures.
"""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from regard.images.glyphs import glyphs
from regard.tasks.gan import TASK
from regard.tasks.task import command
from regard.training.run import Asked
from regard.training.run import train as run
from regard.training.workspace import DATA, make, refuse_foreign

DIGITS = "0123456789"
COUNT = 6000
SETTINGS: dict[str, Any] = {"model.d_model": 64}
PICTURES, SHEET = "train.glyphs.npz", "drawings.png"


@dataclass(frozen=True)
class Options:
    """What the demo of drawing takes."""

    output: Path = Path("runs/demo-gan")
    minutes: float = 2.4
    fresh: bool = False
    device: str | None = None


def demo(options: Options, *, count: int = COUNT, more: dict[str, Any] | None = None) -> None:
    """Draw digits, learn from them, draw others."""
    refuse_foreign(options.output)
    make(options.output / DATA)
    path = write_digits(options.output / DATA / PICTURES, count)
    asked = Asked(
        options.output,
        overrides=SETTINGS | {"train.minutes": options.minutes} | (more or {}),
        fresh=options.fresh,
        device=options.device,
        origin="digits in the fonts that matplotlib ships",
    )
    result = run(TASK, TASK.read([path]), asked)
    drawings = TASK.load(options.output).draw(80, seed=1)
    sheet = options.output / SHEET
    sheet.write_bytes(drawings.sheet(enlarged=2))
    print(told(result.scores, sheet, options.output), flush=True)


def write_digits(path: Path, count: int, seed: int = 1) -> Path:
    """Digits in a file, if it is not there yet."""
    if not path.exists():
        pictures, labels = zip(*glyphs(count, letters=DIGITS, clean=True, seed=seed), strict=True)
        np.savez_compressed(path, images=np.concatenate(pictures), labels=np.array(labels))
    return path


def told(scores: dict[str, float], sheet: Path, folder: Path) -> str:
    """What came of it, and the commands to go on with, as they can be typed here."""
    regard, place = command(), shlex.quote(str(folder))
    found = [f"{100 * scores['classified']:.0f}% of its drawings are taken for the digit that was asked for"]
    found += [f"coverage of the real ones {scores['coverage']:.2f}"]
    return "\n".join(
        (
            f"\n{'; '.join(found)}",
            f"80 drawings, a column a digit: {sheet}",
            "-" * 60,
            "Go on with:",
            f"  {regard} draw -m {place} --class 7 -n 64 -o sevens.png --seed 3",
            f"  {regard} look -m {place} 7 -o look.html          # where each pixel looked",
            f"  {regard} show {place}",
            f"  {regard} train --task gan my_pictures/ -o runs/mine        # your own folder of pictures",
        )
    )
