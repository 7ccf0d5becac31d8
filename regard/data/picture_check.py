"""What is wrong with pictures to learn from: `regard check --task image`, `detection` and `gan`.

Every picture is read to its end, as training will read it. Told are those that cannot be, those that are
there twice (under two labels, one of them is wrong), those of one colour alone, sizes, labels, and boxes that
have no area or reach over the edge. Before this file: `pictures.py`, `boxes.py`; after it: `findings.py`.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial

from regard.data.boxes import Scenes, inside
from regard.data.findings import KEPT, LEFT_OUT, STOPS, Example, Finding, Report
from regard.data.picture_files import Item
from regard.data.pictures import Lost, Pictures
from regard.images.picture import Fit, PictureError, Pixels, open_picture, pixels

MOST_LABELS, MOST_SHOWN = 30, 100  # that are listed


@dataclass
class Tally(Lost):
    """One kind of trouble while it is counted, and the first of them."""

    notes: list[str] = field(default_factory=list)

    def add(self, what: object) -> None:
        """One more."""
        super().add(what)
        if len(self.notes) < MOST_SHOWN:
            self.notes.append(str(what))

    def finding(self, kind: str, effect: str, what: str, examples: int, of: str = "") -> Finding:
        """As the report tells it."""
        shown = tuple(Example("", 0, note=note) for note in self.notes[:examples])
        return Finding(kind, self.count, effect, what, shown, of)


class _Reading:
    """What is found in pictures, one after the other, whatever they are for."""

    def __init__(self) -> None:
        self.broken, self.again, self.torn, self.blank = Tally(), Tally(), Tally(), Tally()
        self.sizes: Counter[tuple[int, int]] = Counter()
        self.seen: dict[bytes, tuple[str, str | None]] = {}

    def read(self, item: Item) -> Pixels | None:
        """A picture (3, H, W) of its own size, or None where it cannot be read."""
        try:
            image = item.open()
            found = pixels(image, Fit(image.height, image.width, 3), item.name)
        except PictureError as error:
            self.broken.add(error)
            return None
        self.sizes[found.shape[1], found.shape[2]] += 1
        if found.min() == found.max():
            self.blank.add(item.name)
        digest = hashlib.sha256(repr(found.shape).encode() + found.tobytes()).digest()
        first, label = self.seen.setdefault(digest, (item.name, item.label))
        if first != item.name:
            self.again.add(f"{item.name} (first {first})")
            if label != item.label:
                self.torn.add(f"{item.name} is {item.label}, {first} is {label}")
        return found

    def findings(self, examples: int) -> list[Finding]:
        """What holds for all pictures."""
        usual, _ = (self.sizes.most_common(1) or [((0, 0), 0)])[0]
        others = self.sizes.total() - self.sizes[usual]
        size = f"not {usual[0]} x {usual[1]} as most are: they are brought to one size"
        return [
            self.broken.finding("broken", LEFT_OUT, "cannot be read", examples),
            self.torn.finding("contradicting", KEPT, "the same picture under two labels", examples),
            self.again.finding(
                "repeated", KEPT, "the same picture again: it weighs more in training", examples
            ),
            self.blank.finding("blank", KEPT, "of one colour alone", examples),
            Finding("other sizes", others, KEPT, size),
        ]


def check_pictures(data: Pictures, *, labelled: bool, fewest: int, examples: int = 3) -> Report:
    """Pictures with labels or without; `labelled` where it takes two of them, `fewest` pictures of each.

    Without labels to tell apart, `fewest` is how many pictures there must be.
    """
    reading, labels = _Reading(), Counter[str]()
    for item in data.items():
        if reading.read(item) is not None and item.label is not None:
            labels[item.label] += 1
    count = reading.sizes.total()
    found = reading.findings(examples)
    if labelled:
        found += _labels(labels, fewest)
    else:
        found += [Finding("labels", len(labels), KEPT, _listed(labels))]
        if count < fewest:
            found.append(Finding("too few", count, STOPS, f"pictures; it takes {fewest} at least"))
    return _report(data, {"pictures": count + reading.broken.count}, found, count)


def check_scenes(data: Scenes, *, examples: int = 3) -> Report:
    """Pictures with boxes."""
    reading, labels = _Reading(), Counter[str]()
    flat, over, empty = Tally(), Tally(), Tally()
    boxes = 0
    for each in data.held:
        read = reading.read(Item(str(each.path), None, partial(open_picture, each.path)))
        if read is None:
            continue
        boxes += len(each.boxes)
        height, width = read.shape[1:]
        _, names = inside(each, height, width, flat)
        labels.update(names)
        if not each.boxes:
            empty.add(str(each.path))
        if any(_reaches_over(box, (1.0, 1.0) if each.shares else (width, height)) for box in each.boxes):
            over.add(str(each.path))
    stray = (Example("", 0, note=data.astray.first),) if examples else ()
    found = [
        *reading.findings(examples),
        Finding(
            "astray",
            data.astray.count,
            LEFT_OUT,
            "annotations of pictures that are not there",
            stray,
            "annotations",
        ),
        flat.finding("no area", LEFT_OUT, "boxes that have none inside their picture", examples, "boxes"),
        over.finding("over the edge", KEPT, "pictures with boxes that are cut there", examples),
        empty.finding(
            "no boxes", KEPT, "pictures in which nothing is marked: nothing is to be found", examples
        ),
        Finding("labels", len(labels), KEPT, _listed(labels)),
    ]
    if not labels:
        found.append(Finding("nothing to find", 1, STOPS, "there is no box in any picture"))
    sizes = {"pictures": reading.sizes.total() + reading.broken.count, "boxes": boxes}
    return _report(data, sizes, found, reading.sizes.total())


def _reaches_over(box: tuple[float, float, float, float], sides: tuple[float, float]) -> bool:
    slack = 0.005 * max(sides)  # of annotations that were rounded
    return min(box) < -slack or box[2] > sides[0] + slack or box[3] > sides[1] + slack


def _labels(labels: Counter[str], fewest: int) -> Iterator[Finding]:
    """Labels that cannot be learned, and how often each one is met."""
    rare = sorted(label for label, count in labels.items() if count < fewest)
    yield Finding("rare labels", len(rare), STOPS, f"of fewer than {fewest} pictures: {', '.join(rare[:9])}")
    yield Finding("labels", len(labels), KEPT, _listed(labels))
    if len(labels) < 2:
        yield Finding("too few labels", 1, STOPS, f"{len(labels)}; there must be two at least")


def _listed(labels: Counter[str]) -> str:
    return ", ".join(f"{label} {count:,}" for label, count in labels.most_common(MOST_LABELS))


def _report(data: Pictures | Scenes, sizes: dict[str, int], found: list[Finding], kept: int) -> Report:
    files = tuple(str(path) for path in data.paths)
    return Report(files, sizes, tuple(each for each in found if each.count), kept)
