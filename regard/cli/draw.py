"""`regard draw`: pictures out of a model folder. The work is regard/tasks/gan's.

What is written depends on the ending: a sheet of all (.png), or arrays (.npz) that `regard train` reads.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.console import note
from regard.cli.options import takes

if TYPE_CHECKING:
    from regard.tasks.gan.drawer import Drawer


@dataclass(frozen=True)
class Options:
    """What `regard draw` takes."""

    model: Annotated[Path, typer.Option("-m", "--model", metavar="DIR", help="A model folder.")]
    label: Annotated[
        str | None, typer.Option("--class", metavar="NAME", help="What to draw.", show_default="every class")
    ] = None
    count: Annotated[int, typer.Option("-n", "--count", help="How many.")] = 64
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="F", help="By its ending: .png (a sheet), .npz.")
    ] = Path("sheet.png")
    seed: Annotated[int, typer.Option(help="The same seed draws the same pictures.")] = 1
    spread: Annotated[float, typer.Option(help="Less than 1: likelier drawings, more alike.")] = 1.0
    columns: Annotated[int, typer.Option(help="Of a sheet.", show_default="about square")] = 0
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1, mps; found by itself.")] = None


@takes(Options)
def draw(options: Options) -> None:
    """Draw pictures with a generator."""
    from regard.errors import UsageError
    from regard.tasks.task import expect, task_of

    expect(options.model, "gan")
    if options.columns < 0:
        raise UsageError(f"columns ({options.columns}) must be 0 or more")
    from regard.process.device import pick_device
    from regard.tasks.gan.drawer import refuse_ending

    refuse_ending(options.output)
    drawer: Drawer = task_of(options.model).load(options.model, device=pick_device(options.device))
    drawn = drawer.draw(options.count, options.label, seed=options.seed, spread=options.spread)
    if options.output.suffix == ".npz":
        options.output.write_bytes(drawn.npz())
    else:
        options.output.write_bytes(drawn.sheet(columns=options.columns))
    note(f"wrote {options.output}")
