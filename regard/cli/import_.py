"""`regard import`: a Marian folder of Hugging Face becomes a model folder. The work is regard/interop's."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.console import note
from regard.cli.options import takes


@dataclass(frozen=True)
class Options:
    """What `regard import` takes."""

    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="A Marian folder of Hugging Face.", show_default=False)
    ]
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="The model folder to make.")]


@takes(Options)
def import_(options: Options) -> None:
    """Make a model folder of a Marian one, such as opus-mt."""
    from regard.interop import marian
    from regard.interop.parts import new_folder
    from regard.models.folder import save

    with new_folder(options.output) as place:
        loaded = marian.read(options.folder)
        config, model, tokenizer = loaded
        save(place, config=config, model=model, tokenizer=tokenizer, card=marian.card(options.folder, loaded))
    note(f"{options.output} is ready: echo text | regard translate -m {options.output}")
