"""`regard import`: what another program trained becomes a model folder. The work is regard/interop's."""

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
        Path,
        typer.Argument(
            metavar="FOLDER",
            help="A folder of Hugging Face (Marian, Pegasus, GPT-2, GPT-NeoX, Llama, BERT, DistilBERT, "
            "with what sentence-transformers adds, ViT, DeiT, Whisper), of a translator of Firefox, a .bin "
            "file of llama2.c or a .pt file of Whisper.",
            show_default=False,
        ),
    ]
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="The model folder to make.")]


@takes(Options)
def import_(options: Options) -> None:
    """Take over a model that another program trained."""
    from regard.interop import known
    from regard.interop.parts import new_folder
    from regard.models.folder import save
    from regard.tasks.task import task_named

    with new_folder(options.output) as place:
        loaded = known.read(options.folder)
        card = known.card(options.folder, loaded)
        save(
            place,
            config=loaded.config,
            model=loaded.model,
            tokenizer=loaded.text,
            files=loaded.files,
            card=card,
        )
        known.add(options.folder, loaded, place)
    note(f"{options.output} is ready: {task_named(loaded.config.task).usage(options.output)}")
