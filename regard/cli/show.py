"""`regard show`: the model card of a folder, in the terminal."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.console import page
from regard.cli.options import takes


@dataclass(frozen=True)
class Options:
    """What `regard show` takes."""

    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A model folder.", show_default=False)]


@takes(Options)
def show(options: Options) -> None:
    """Show a model's card: data, training, scores."""
    card = read_card(options.folder)
    console = page()
    if console is None:
        print(card, end="" if card.endswith("\n") else "\n")
        return
    from rich.markdown import Markdown

    console.print(Markdown(card))


def read_card(folder: Path) -> str:
    """The README.md of a model folder, whoever wrote it: nothing in it that a terminal would act on."""
    from regard.errors import ModelError, printable
    from regard.foreign import MOST_SETTINGS, read_bytes

    if not folder.is_dir():
        what = "is a file" if folder.exists() else "does not exist"
        raise ModelError(f"{folder} {what}; give the folder that regard train made")
    if not (folder / "config.json").is_file():
        raise ModelError(f"{folder} is no model folder: it holds no config.json")
    if not (folder / "README.md").exists():
        raise ModelError(f"{folder} holds no README.md, the model's card")
    try:
        text = read_bytes(folder / "README.md", MOST_SETTINGS).decode()
        return "\n".join(printable(line.rstrip("\r")) for line in text.split("\n"))
    except UnicodeDecodeError:
        raise ModelError(f"{folder / 'README.md'} is not UTF-8 text") from None
