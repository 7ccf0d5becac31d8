"""What is wrong with recordings and their texts, line by line: `regard check --task speech`.

The same readers that training has, which go on past a fault here: each recording is read once, from its first
sample to its last. The report is `regard.data.findings`'.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from regard.audio.sound import Recording
from regard.config.speech import SpeechConfig
from regard.data.findings import KEPT, LEFT_OUT, STOPS, Example, Finding, Report
from regard.data.recordings import Fault, Spoken, look_through
from regard.errors import DataError
from regard.tasks.speech.examples import Recordings

RATE = 8000  # that recordings are heard at here
SILENT = 1e-4  # of full scale: nothing in it is louder
CUT = 0.999  # a sample so near full scale was probably cut off
SHARE = 1e-3  # of samples that are
FAST = 30.0  # characters a second that nobody speaks


@dataclass
class _Kind:
    """One kind of trouble, and where it was met."""

    name: str
    effect: str
    what: str
    most: int
    count: int = 0
    examples: list[Example] = field(default_factory=list)

    def add(self, note: str) -> None:
        self.count += 1
        if len(self.examples) < self.most:
            self.examples.append(Example("", 0, note=note))


def check(data: Recordings, *, examples: int = 3) -> Report:
    """Lines and recordings that cannot be read, and those that teach little."""
    kinds = {
        name: _Kind(name, effect, what, examples)
        for name, effect, what in (
            ("columns", STOPS, "a line without what it must hold"),
            ("recordings", STOPS, "it is not there, or no sound that can be read"),
            ("too long", LEFT_OUT, f"longer than speech.longest ({SpeechConfig().longest:g} s)"),
            ("silent", KEPT, "nothing is heard in it, whatever its text says"),
            ("cut off", KEPT, "many samples at full scale: it was recorded too loud"),
            ("ends early", KEPT, "its header speaks of more sound than there is: it was not copied whole"),
            ("fast", KEPT, f"more than {FAST:g} characters a second: its text may be another's"),
            ("repeated", KEPT, "the same file again: it weighs more in training"),
        )
    }
    seen: dict[str, str] = {}
    total = kept = 0
    heard = 0.0
    for spoken in _lines(data, kinds):
        total += 1
        first = seen.setdefault(str(spoken.path), spoken.where)
        if first != spoken.where:
            kinds["repeated"].add(f"{spoken.where}: {spoken.path.name} (first in {first})")
        seconds = _listened(spoken, kinds)
        if seconds is not None:
            kept, heard = kept + (seconds <= SpeechConfig().longest), heard + seconds
    findings = (Finding(k.name, k.count, k.effect, k.what, tuple(k.examples)) for k in kinds.values())
    files = tuple(str(path) for path in data.train)
    sizes = {"recordings": total, "seconds": round(heard)}
    return Report(files, sizes, tuple(finding for finding in findings if finding.count), kept)


def _lines(data: Recordings, kinds: dict[str, _Kind]) -> Iterator[Spoken]:
    for path in data.train:
        for found in look_through(path):
            if isinstance(found, Fault):
                kinds["columns"].add(found.message)
            else:
                yield found


def _listened(spoken: Spoken, kinds: dict[str, _Kind]) -> float | None:
    """The seconds of a recording; what is wrong with it is added to the kinds."""
    loudest, full, count = 0.0, 0, 0
    try:
        recording = Recording(spoken.path)
        for block in recording.blocks(RATE):
            level = np.abs(block)
            loudest, full = max(loudest, float(level.max(initial=0.0))), full + int((level > CUT).sum())
            count += len(block)
    except DataError as error:
        kinds["recordings"].add(f"{spoken.where}: {error}")
        return None
    seconds = count / RATE
    said = f"{spoken.where}: {spoken.path.name}, {seconds:.1f} s"
    if seconds > SpeechConfig().longest:
        kinds["too long"].add(said)
    if loudest < SILENT:
        kinds["silent"].add(said)
    if full > math.ceil(SHARE * count):
        kinds["cut off"].add(said)
    if recording.lost:
        kinds["ends early"].add(f"{said} of {seconds + recording.lost:.1f}")
    if len(spoken.text) > FAST * seconds:
        kinds["fast"].add(f"{said}, {len(spoken.text)} characters")
    return seconds
