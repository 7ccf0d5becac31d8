"""How good a generator is: `regard evaluate -m DIR PICTURES`.

Half of the pictures are what drawings are held against. The other half takes the place of drawings and says
what can be had; as many are drawn as there are in it, so both are measured alike.
"""

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from regard.config.gan import GanConfig
from regard.data.pictures import Pictures, lost_in
from regard.errors import DataError
from regard.images.picture import Fit
from regard.measure.score import Score
from regard.models.folder import load_folder
from regard.tasks.gan.drawer import in_turn, names_in, paint
from regard.tasks.gan.judge import JUDGE, from_bytes
from regard.tasks.gan.lesson import FEWEST, gallery_of
from regard.tasks.gan.scores import OWN, Gallery, Reference, taught
from regard.tasks.gan.validation import DRAWN_LAST, SEED, TAUGHT
from regard.tasks.task import Evaluation


def evaluation(folder: Path, files: Sequence[Path], device: torch.device | str) -> Evaluation:
    """The scores of drawings, and of real pictures in their place."""
    loaded = load_folder(folder, device=device)
    how, names = loaded.config.of(GanConfig), names_in(loaded.files)
    pictures = Pictures(tuple(files), part="test")
    if pictures.survey.count < FEWEST:
        raise DataError(f"{files[0]}: {pictures.survey.count} pictures; {FEWEST} at least can be measured on")
    if strange := [label for label in pictures.labels if names and label not in names]:
        raise DataError(
            f"{files[0]}: the class {strange[0]} is none of this generator: {', '.join(names[:20])}"
        )
    with tempfile.TemporaryDirectory(prefix="regard-") as place:
        store = pictures.store(Path(place) / "real", Fit(how.side, how.side, how.channels), names)
        lost = lost_in(store)
        rows = np.random.default_rng(SEED).permutation(len(store))[: 2 * DRAWN_LAST]
        conditional = bool(names) and bool(pictures.labels)
        real, other = (gallery_of(store, conditional, np.sort(part)) for part in np.array_split(rows, 2))
        every = gallery_of(store, conditional, np.sort(rows))
    other = other.some(len(real))
    reference = Reference(from_bytes(loaded.files[JUDGE], how.channels), real)
    classes = len(names)

    def drawn(count: int, first: int) -> Gallery:
        labels = in_turn(count, classes)
        return Gallery(paint(loaded.model, labels, count, seed=SEED, first=first), labels)

    scores = reference.compare(drawn(len(other), 0))
    if conditional:
        scores["taught"] = taught(drawn(TAUGHT, DRAWN_LAST), every, classes, seconds=None)
    beside = reference.compare(other)
    more = {
        "features": OWN,
        "drawings": len(other),
        "real": {name: score.value for name, score in beside.items()},
    }
    return Evaluation(scores, more, _lines(scores, beside), [lost] if lost else [])


def _lines(scores: Mapping[str, Score], real: Mapping[str, Score]) -> list[str]:
    """A line a score, with what real pictures get beside it."""
    rows: list[tuple[str, str, str]] = [("", "drawings", "real pictures")]
    for name, score in scores.items():
        other: Any = real.get(name)
        shown = "" if other is None else f"{other.value:.{other.digits}f}"
        rows.append((score.label or name, f"{score.value:.{score.digits}f}", shown))
    wide = max(len(row[0]) for row in rows)
    return [f"{name:{wide}}  {value:>10}  {other:>13}".rstrip() for name, value, other in rows]
