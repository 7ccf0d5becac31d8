"""Measures a generator while it learns: drawings beside pictures it has not seen, and a sheet to look at.

Every measurement draws from the same noise, so that sheets and scores differ by what was learned alone. The
last one takes more drawings, and lets a classifier learn from them. Before this file: `scores.py`,
`drawer.py`; after it: `regard.training.loop`.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import nn

from regard.atomic import write_bytes
from regard.config import TrainConfig
from regard.errors import StorageError
from regard.images.sheet import sheet
from regard.measure.neighbours import NEAREST
from regard.measure.score import Score
from regard.models.card import escape
from regard.tasks.gan.drawer import in_turn, paint
from regard.tasks.gan.judge import Judge
from regard.tasks.gan.scores import Gallery, Reference, taught
from regard.training.objective import Limit, Measurement, undisturbed

SAMPLES, LAST_SHEET = "samples", "samples.png"
DRAWN, DRAWN_LAST, TAUGHT = 1000, 5000, 10_000  # drawings of a measurement, of the last, and that teach
AT_ONCE = 256  # drawings between two looks at the clock
SEED = 7  # of what is measured; whoever draws begins at 1
ROWS, COLUMNS = 8, 10  # of a sheet


class Appraiser:
    """Measures on pictures that are held out; the Fréchet distance decides."""

    def __init__(self, folder: Path, judge: Judge, held: Gallery, seen: Gallery, classes: int) -> None:
        self.folder, self.reference, self.seen, self.classes = folder, Reference(judge, held), seen, classes

    def measure(
        self,
        model: nn.Module,
        device: torch.device,
        train: TrainConfig,
        *,
        limit: Limit | None = None,
        last: bool = False,
    ) -> Measurement:
        """Every score; what a classifier learns of drawings in the last measurement alone."""
        limit = limit or Limit()
        start = limit.clock()
        wanted = min(DRAWN_LAST if last else DRAWN, len(self.reference.real))
        with undisturbed(model):  # in full precision, as whoever draws does it
            self._show(model, last=last)
            made = self._draw(model, wanted, limit.part(0.3) if last else limit)
            scores = self.reference.compare(made)
            if last and self.classes and limit.left() > 1:
                scores["taught"] = self._taught(model, limit)
        seconds = (limit.clock() - start) * wanted / len(made)
        return Measurement(scores, complete=len(made) == wanted, seconds=0.0 if last else seconds)

    def _draw(self, model: nn.Module, wanted: int, limit: Limit, first: int = 0) -> Gallery:
        """As many drawings as there is time for, and enough to measure."""
        labels, made, count = in_turn(wanted, self.classes), [], 0
        while count < wanted and (count <= NEAREST or limit.left() > 0):
            some = min(AT_ONCE, wanted - count)
            asked = None if labels is None else labels[count : count + some]
            made.append(paint(model, asked, some, seed=SEED, first=first + count))
            count += some
        return Gallery(np.concatenate(made), None if labels is None else labels[:count])

    def _taught(self, model: nn.Module, limit: Limit) -> Score:
        """A third of the time that is left for drawings, two for who learns from them."""
        made = self._draw(model, min(TAUGHT, 2 * len(self.seen)), limit.part(1 / 3), first=DRAWN_LAST)
        seconds = limit.left() if np.isfinite(limit.until) else None
        return taught(
            made, self.reference.real, self.classes, seconds=None if seconds is None else max(1.0, seconds)
        )

    def _show(self, model: nn.Module, *, last: bool) -> None:
        """A sheet of the same noise as the one before it."""
        columns = min(self.classes, COLUMNS) or COLUMNS
        labels = None if not self.classes else np.tile(np.arange(columns, dtype=np.int64), ROWS)
        drawn = sheet(paint(model, labels, ROWS * columns, seed=SEED), columns, enlarged=2)
        folder = self.folder / SAMPLES
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise StorageError(f"cannot make {folder}: {error.strerror}") from error
        write_bytes(folder / f"{_next_number(folder):03d}.png", drawn)
        if last:
            write_bytes(self.folder / LAST_SHEET, drawn)

    def real_against_real(self) -> dict[str, Score]:
        """What real pictures get that training saw, as many as were drawn."""
        return self.reference.compare(
            self.seen.some(min(DRAWN_LAST, len(self.reference.real), len(self.seen)))
        )

    def report(self, names: Sequence[str]) -> str:
        """For the card: the last sheet, and real pictures in the place of drawings."""
        shown = ", ".join(escape(name) for name in names[:COLUMNS])
        columns = f" A column a class: {shown}." if names else ""
        parts = [
            "## What it draws\n",
            f"![drawings]({LAST_SHEET})\n",
            f"Not chosen: the first of their seed.{columns}\n",
        ]
        return "\n".join([*parts, beside(self.real_against_real())])


def beside(real: Mapping[str, Score]) -> str:
    """A table of what real pictures get."""
    names = [score.label or name for name, score in real.items()]
    cells = [f"{score.value:.{score.digits}f}" for score in real.values()]
    count = max(score.count for score in real.values())
    return "\n".join(
        [
            "## Real against real\n",
            f"What {count:,} real pictures get that were trained on, in the place of drawings.\n",
            f"| {' | '.join(names)} |",
            f"|{'---:|' * len(names)}",
            f"| {' | '.join(cells)} |",
            "",
        ]
    )


def _next_number(folder: Path) -> int:
    numbers = [int(path.stem) for path in folder.glob("*.png") if re.fullmatch(r"\d+", path.stem)]
    return 1 + max(numbers, default=0)
