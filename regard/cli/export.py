"""`regard export`: a model folder as another program reads it. The work is regard/interop's."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.console import note
from regard.cli.options import takes
from regard.errors import UsageError

FORMATS = ("ctranslate2", "huggingface", "onnx")


@dataclass(frozen=True)
class Options:
    """What `regard export` takes."""

    model: Annotated[Path, typer.Option("-m", "--model", metavar="DIR", help="A model folder.")]
    to: Annotated[str, typer.Option("--to", metavar="FORMAT", help=f"{', '.join(FORMATS)}.")]
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="The folder to make.")]

    def __post_init__(self) -> None:
        if self.to not in FORMATS:
            raise UsageError(f"--to {self.to} is unknown; there are {', '.join(FORMATS)}")


@takes(Options)
def export(options: Options) -> None:
    """Write a model for CTranslate2, Hugging Face or ONNX."""
    from regard.interop.parts import new_folder
    from regard.tasks.task import task_of

    task = task_of(options.model)
    with new_folder(options.output) as place:
        task.export(options.model, options.to, place)
    note(f"{options.output} is ready")
