"""`regard fill`: a text with a [MASK] in, what may stand there out. The work is regard/tasks/masked's.

A text on the command line is shown with its runners-up; without one, each line of the input is filled by what
is likeliest and each line of the output is that text.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.console import note
from regard.cli.options import Engine, Model, Precision, takes

if TYPE_CHECKING:
    from regard.tasks.masked.filler import Filled

TOGETHER = 256  # lines that are filled side by side


@dataclass(frozen=True)
class Options:
    """What `regard fill` takes."""

    model: Model
    text: Annotated[
        str | None, typer.Argument(help="A text with a [MASK].", show_default="a text each line of the input")
    ] = None
    source: Annotated[
        Path,
        typer.Option("-i", "--input", metavar="F", readable=False, help="Texts, a line each; - is stdin."),
    ] = Path("-")
    top: Annotated[int, typer.Option(help="Guesses for each gap.")] = 5
    as_json: Annotated[
        bool, typer.Option("--json", help="An object a text: text, gaps (guesses with probabilities).")
    ] = False
    precision: Precision = "auto"
    engine: Engine = "auto"


@takes(Options)
def fill(options: Options) -> None:
    """Fill the gaps of a text."""
    from itertools import islice

    from regard.cli.streams import reading, writing
    from regard.tasks.masked import TASK
    from regard.tasks.task import expect

    expect(options.model, "masked")
    filler = TASK.load(options.model, precision=options.precision, engine=options.engine)
    if filler.reader.note:
        note(filler.reader.note)
    if options.text is not None:
        found = filler.fill([options.text], top=options.top)[0]
        print(_as_json(found) if options.as_json else _shown(found), flush=True)
        return
    with reading(options.source) as lines, writing(Path("-")) as write:
        while window := list(islice(lines, TOGETHER)):
            for each in filler.fill(window, top=options.top):
                write(_as_json(each) if options.as_json else each.text)


def _shown(found: "Filled") -> str:
    """For people: the text, then for each gap its guesses."""
    lines = [found.text]
    for number, gap in enumerate(found.gaps, 1):
        lines += [f"gap {number}"] if len(found.gaps) > 1 else []
        seen = [(guess.text if guess.text.strip() else repr(guess.text), guess.probability) for guess in gap]
        lines += [f"  {probability:6.1%}  {text}" for text, probability in seen]
    return "\n".join(lines)


def _as_json(found: "Filled") -> str:
    return json.dumps(found.to_dict(), ensure_ascii=False)
