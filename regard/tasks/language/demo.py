"""`regard demo --task language`: a model of Python code, from the standard library of the user's own machine.

Nothing is downloaded: modules beside `os.py` are read like anybody's files of text. After that it is what
`regard train`, `regard generate` and `regard show` do.
"""

import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regard.decoding.sampling import Sampling
from regard.tasks.language import TASK
from regard.tasks.language.writer import Wish
from regard.tasks.task import command
from regard.training.run import Asked
from regard.training.run import train as run
from regard.training.workspace import refuse_foreign

SETTINGS: dict[str, Any] = {"text.units": "characters"}  # learned in minutes; words would take longer
PROMPTS = ("def read(", "class ", "    for ")
TOKENS = 200
SHARE = 40  # files at most of the library, the largest of its own modules first: enough for minutes


@dataclass(frozen=True)
class Options:
    """What the demo of language takes."""

    output: Path = Path("runs/demo-language")
    minutes: float = 1.9
    fresh: bool = False
    device: str | None = None


def library() -> list[Path]:
    """The modules of the standard library here, by size; those with the most text."""
    folder = Path(os.__file__).parent
    files = [path for path in folder.glob("*.py") if path.is_file()]
    return sorted(sorted(files, key=lambda path: (-path.stat().st_size, path.name))[:SHARE])


def demo(options: Options, files: Sequence[Path] | None = None, more: dict[str, Any] | None = None) -> None:
    """Train on code, then write some."""
    refuse_foreign(options.output)
    asked = Asked(
        options.output,
        overrides=SETTINGS | {"train.minutes": options.minutes} | (more or {}),
        fresh=options.fresh,
        device=options.device,
        origin="the Python standard library of this machine",
    )
    result = run(TASK, TASK.read(files or library()), asked)
    writer = TASK.load(options.output)
    wish = Wish(tokens=TOKENS, sampling=Sampling(temperature=0.7, seed=1))
    bits = result.scores.get("bits_per_byte")
    if bits is not None:
        print(f"\n{bits:.2f} bits per byte on modules that training never saw; what it writes:")
    for text in writer.generate(PROMPTS, wish):
        print(f"\n{'-' * 60}\n{text.prompt}{text.text}")
    print(farewell(options.output), flush=True)


def farewell(folder: Path) -> str:
    """The commands to go on with, as they can be typed here."""
    regard, place = command(), shlex.quote(str(folder))
    return "\n".join(
        (
            "-" * 60,
            "Go on with:",
            f"  {regard} generate -m {place} 'def main(' --temperature 0.7",
            f"  {regard} show {place}",
            f"  {regard} train --task language my_texts/ -o runs/mine        # your own folder of text",
        )
    )
