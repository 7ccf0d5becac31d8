"""`regard demo`: the whole road on data that needs no download, from text to a model in use.

Which road it is, the task says (`Task.demo`); everything in it is what `regard train` and the other verbs do
with anybody's files.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import takes


@dataclass(frozen=True)
class Options:
    """What `regard demo` takes."""

    task: Annotated[
        str,
        typer.Option(
            help="What is shown: translation, language, masked, classify, tag, image, detection, speech."
        ),
    ] = "translation"
    to: Annotated[
        str | None,
        typer.Option(metavar="LANG", help="Language to translate to: fr, ja, pt-BR, ...", show_default="de"),
    ] = None
    source: Annotated[
        str | None,
        typer.Option("--from", metavar="LANG", help="Language to translate from.", show_default="en"),
    ] = None
    output: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", metavar="DIR", help="The model folder to make.", show_default="runs/demo"
        ),
    ] = None
    minutes: Annotated[float | None, typer.Option(help="Time for training.", show_default="about 2")] = None
    fresh: Annotated[bool, typer.Option("--fresh", help="Start over instead of resuming.")] = False
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1, mps; found by itself.")] = None


@takes(Options)
def demo(options: Options) -> None:
    """Train on what every machine has, score, use it."""
    from regard.tasks.task import task_named

    asked = {name: value for name, value in vars(options).items() if name != "task" and value is not None}
    task_named(options.task).demo(**asked)
