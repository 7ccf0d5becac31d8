"""`regard pack`: the folder that is shared, and a zip of it. The work is regard/interop/hub.py's."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.console import note
from regard.cli.options import takes
from regard.errors import UsageError

_LICENCE = re.compile(r"[A-Za-z0-9.+-]{1,60}")


@dataclass(frozen=True)
class Options:
    """What `regard pack` takes."""

    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A model folder.", show_default=False)]
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            help="The folder to make, DIR-packed if not said; a .zip of it comes beside it.",
            show_default=False,
        ),
    ] = None
    licence: Annotated[
        str,
        typer.Option("--license", metavar="ID", help="For the card, as the Hub names it: mit, cc-by-4.0."),
    ] = ""

    int8: Annotated[
        bool, typer.Option("--int8", help="Matrices as 8-bit numbers with a scale a row; 16-bit floats else.")
    ] = False

    def __post_init__(self) -> None:
        if self.licence and not _LICENCE.fullmatch(self.licence):
            raise UsageError(f"--license ({self.licence}) must be a name such as mit or cc-by-4.0")


@takes(Options)
def pack(options: Options) -> None:
    """Make the small folder that is shared, and a zip of it."""
    folder = options.folder.parent / f"{options.folder.resolve().name}-packed"
    output = options.output or folder
    archive = output.with_name(f"{output.name}.zip")
    if archive.exists():
        raise UsageError(f"{archive} exists; name another folder, or remove it")
    from regard.interop.hub import share

    made = share(options.folder, output, licence=options.licence, int8=options.int8)
    before = sum(path.stat().st_size for path in options.folder.rglob("*") if path.is_file())
    note(
        f"{output} is ready: {_mega(made.folder)}, {archive.name} {_mega(made.archive)}; "
        f"{options.folder} has {_mega(before)}"
    )


def _mega(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
