"""Bulk work in parts: `--part 3/8` answers the third of eight shares of the lines, whole or not at all.

Every line is answered by itself, so the parts, put together, are what one process writes. A part that is
there is not made again, unless its input or its model is newer: what died is started once more.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TypeVar

from regard.atomic import TEMPORARY, sync_folder
from regard.cli.console import note
from regard.cli.streams import is_standard, reading, writing
from regard.data.address import Address
from regard.errors import UsageError, shown

MOST = 1_000_000
Thing = TypeVar("Thing")


@dataclass(frozen=True)
class Part:
    """Which share of which file goes where."""

    number: int  # from 1
    of: int
    source: Path
    output: Path  # of the whole; there is none yet

    @property
    def path(self) -> Path:
        """Where it goes: names sort as the parts do.

        >>> Part(3, 12, Path("in"), Path("out.de")).path.name
        'out.de.03-of-12'
        """
        width = len(str(self.of))
        return self.output.with_name(f"{self.output.name}.{self.number:0{width}}-of-{self.of}")

    def there(self, model: Path) -> bool:
        """Whether it was made before of what is there now; said if so."""
        return made_of(self.path, self.source, model / "model.safetensors")

    @contextmanager
    def reading(self) -> Iterator[Iterator[str]]:
        """Its lines; all are counted first."""
        with reading(self.source) as lines:
            count = sum(1 for _ in lines)
        with reading(self.source) as lines:
            yield islice(lines, (self.number - 1) * count // self.of, self.number * count // self.of)

    @contextmanager
    def writing(self) -> Iterator[Callable[[str], None]]:
        """A function that writes a line; the file has its name when the block ends well."""
        under = self.path.with_name(f"{self.path.name}.{os.getpid()}{TEMPORARY}")
        try:
            with writing(under) as write:
                yield write
            with under.open("rb") as file:
                os.fsync(file.fileno())
            under.replace(self.path)
            sync_folder(self.path.parent)
        finally:
            under.unlink(missing_ok=True)


def made_of(path: Path, *sources: Path) -> bool:
    """Whether a file is there and none of what it was made of is newer; said if so."""
    if not path.exists():
        return False
    made = path.stat().st_mtime_ns
    if any(each.stat().st_mtime_ns > made for each in sources if each.exists()):
        return False
    note(f"{path} is there already")
    return True


def _numbers(asked: str) -> tuple[int, int]:
    """Which part, of how many."""
    number, _, of = asked.partition("/")
    if not (number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of) <= MOST):
        raise UsageError(f"--part ({shown(asked, 20)}) must be I/N, the I-th of N parts: 3/8")
    return int(number), int(of)


def share_of(asked: str | None, things: Sequence[Thing]) -> Sequence[Thing]:
    """The things that the part has which is asked for.

    >>> share_of("2/3", "abcdefgh")
    'cde'
    """
    number, of = _numbers(asked) if asked is not None else (1, 1)
    return things[(number - 1) * len(things) // of : number * len(things) // of]


def part_of(asked: str | None, source: Path, output: Path) -> Part | None:
    """The part that is asked for, if one is."""
    if asked is None:
        return None
    number, of = _numbers(asked)
    if is_standard(source) or is_standard(output):
        raise UsageError("--part needs a file that can be read again (-i) and a name for its output (-o)")
    if isinstance(output, Address):
        raise UsageError(f"--part writes a file of this machine, which {output} is not; copy the parts there")
    if output.suffix in (".gz", ".npy"):
        raise UsageError(
            f"--part writes plain lines; name an output (-o) that does not end with {output.suffix}"
        )
    return Part(number, of, source, output)
