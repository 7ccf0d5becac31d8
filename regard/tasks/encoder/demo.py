"""What the demos of encoders share: phrases of CLDR in files, a short run, commands to go on with.

The phrases are those of `regard.text.phrasebook`, so nothing is downloaded; everything after that is what
`regard train` does with anybody's files. `regard.tasks.masked.demo` and `regard.tasks.labels.demo` use it.
"""

import shlex
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from regard.errors import UsageError, printable
from regard.tasks.task import Task, command
from regard.training.run import Asked, Result
from regard.training.run import train as run
from regard.training.workspace import DATA, make, refuse_foreign

Item = TypeVar("Item")
SPLITS = {"train": 24_000, "valid": 500, "test": 1000}  # phrases of each
ORIGIN = "phrases of CLDR, by Babel"


@dataclass(frozen=True)
class Options:
    """What these demos take."""

    output: Path
    minutes: float = 1.0
    source: str = "en"  # the language of the phrases
    fresh: bool = False
    device: str | None = None


def options_of(task: Task, given: Mapping[str, Any], *, minutes: float) -> Options:
    """The flags of `regard demo` that were given, over what the task has by itself."""
    if "to" in given:
        raise UsageError(f"--to means nothing to task={task.name}")
    return replace(Options(Path(f"runs/demo-{task.name}"), minutes), **given)


def write_splits(
    folder: Path, what: str, splits: Mapping[str, Iterable[Item]], line: Any, ending: str
) -> dict[str, Path]:
    """A file a split, as many items as `SPLITS` says, each by `line`; tests have nothing twice."""
    _note(f"writing {SPLITS['train']:,} {what} from CLDR to {folder}")
    make(folder)
    paths = {}
    for split, items in splits.items():
        chosen = islice(items if split == "train" else _once(items), SPLITS[split])
        paths[split] = folder / f"{split}.{ending}"
        with paths[split].open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(map(line, chosen))
    return paths


def _once(items: Iterable[Item]) -> Iterator[Item]:
    """Each once: a test that asks the same thing twice measures less than it says."""
    seen: set[str] = set()
    for item in items:
        if repr(item) not in seen:
            seen.add(repr(item))
            yield item


def learn(task: Task, paths: Mapping[str, Path], options: Options, settings: Mapping[str, Any]) -> Result:
    """The run, measured on the phrases that are for that."""
    overrides = dict(settings) | {"train.minutes": options.minutes}
    asked = Asked(
        options.output, overrides=overrides, fresh=options.fresh, device=options.device, origin=ORIGIN
    )
    return run(task, task.read([paths["train"]], [paths["valid"]]), asked)


def place_for(options: Options) -> Path:
    """The folder of the phrases; refused where another's things lie around it."""
    refuse_foreign(options.output)
    return options.output / DATA


def farewell(folder: Path, uses: Iterable[str], own: str) -> str:
    """The commands to go on with, as they can be typed here; `{}` stands for the folder."""
    regard, place = command(), shlex.quote(str(folder))
    lines = [*(f"  {regard} {use.format(place)}" for use in (*uses, "show {}")), f"  {regard} {own}"]
    return "\n".join(["Go on with:", *lines])


def _note(message: str) -> None:
    print(printable(message), file=sys.stderr, flush=True)
