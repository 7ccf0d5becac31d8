"""What speech is learned from: recordings with their texts, to train on and to measure on.

Before this file: `regard.data.recordings`; after it: `lesson.py`.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from regard.audio.sound import Recording
from regard.data.recordings import Spoken, read_spoken
from regard.errors import DataError
from regard.training.feed import spread_over

EDGE = 4096  # bytes at either end of a recording that tell it from others
ASKED = 100  # recordings whose headers tell the rate
MOST_RATE = 16000


@dataclass(frozen=True)
class Recordings:
    """Files and folders to learn from, and to measure on if they are given."""

    train: tuple[Path, ...]
    valid: tuple[Path, ...] = ()

    @property
    def paths(self) -> tuple[Path, ...]:
        """What is trained on."""
        return self.train

    def check(self, *, thorough: bool) -> None:
        """Refuse what cannot be learned from; `thorough` opens every recording."""
        for group in (self.train, self.valid):
            count = 0
            for spoken in self.read(group):
                count += 1
                if thorough:
                    told(spoken).close()
            if group and not count:
                raise DataError(f"{', '.join(map(str, group))}: there is nothing to learn from")

    def read(self, paths: Sequence[Path]) -> Iterator[Spoken]:
        """Every recording with its text, in order; what is wrong raises DataError."""
        for path in paths:
            yield from read_spoken(path)

    def fingerprints(self) -> dict[str, str]:
        """Of both: texts, names and sizes, and what stands at the ends of every recording."""
        prints = {"training data": self._print(self.train)}
        return prints | ({"validation data": self._print(self.valid)} if self.valid else {})

    def _print(self, paths: Sequence[Path]) -> str:
        digest = hashlib.sha256()
        for spoken in self.read(paths):
            digest.update(f"{spoken.path.name}\n{spoken.text}\n".encode())
            try:
                with spoken.path.open("rb") as file:
                    size = spoken.path.stat().st_size
                    digest.update(f"{size}\n".encode() + file.read(EDGE))
                    file.seek(max(0, size - EDGE))
                    digest.update(file.read(EDGE))
            except OSError as error:
                raise DataError(f"{spoken.where}: cannot read {spoken.path}: {error.strerror}") from None
        return digest.hexdigest()

    def rate(self) -> int:
        """The commonest rate of the recordings, at most 16 kHz."""
        every = list(self.read(self.train))
        counts: Counter[int] = Counter()
        for place in spread_over(len(every), ASKED):
            recording = told(every[place])
            counts[recording.rate] += 1
            recording.close()
        return min(MOST_RATE, max(4000, counts.most_common(1)[0][0]))


def told(spoken: Spoken) -> Recording:
    """The recording of a line, opened; errors name the line."""
    try:
        return Recording(spoken.path)
    except DataError as error:
        raise DataError(f"{spoken.where}: {error}") from None
