"""`regard demo`: the whole road on phrases that need no download, from text to a scored translator.

Phrases of regard/text/phrasebook.py are written to files, and everything after that is what `regard train`
and `regard evaluate` do with anybody's files.
"""

import json
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.console import note
from regard.cli.options import takes

if TYPE_CHECKING:
    from regard.data.corpus import Corpus
    from regard.decoding.translator import Translator

COUNTS = {"train": 60_000, "valid": 500, "test": 1000}
PRESET = "tiny"
SHOWN = 8


@dataclass(frozen=True)
class Options:
    """What `regard demo` takes."""

    to: Annotated[str, typer.Option(metavar="LANG", help="Language to translate to: de, fr, ja, pt-BR, ...")] = "de"
    source: Annotated[str, typer.Option("--from", metavar="LANG", help="Language to translate from.")] = "en"
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="The model folder to make.")] = Path(
        "runs/demo"
    )
    minutes: Annotated[float, typer.Option(help="Time for training.")] = 1.0
    fresh: Annotated[bool, typer.Option("--fresh", help="Start over instead of resuming.")] = False
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1, mps; found by itself.")] = None


@takes(Options)
def demo(options: Options) -> None:
    """Train a translator on generated phrases, score it, and say how to go on."""
