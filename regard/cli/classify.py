"""`regard classify`: a text a line in, its label a line out. The work is regard/tasks/labels'."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.console import note
from regard.cli.options import takes
from regard.errors import UsageError

if TYPE_CHECKING:
    from regard.tasks.labels.labeller import Label, Labels

OVERFLOW = ("cut", "refuse")


@dataclass(frozen=True)
class Options:
    """What `regard classify` takes."""

    model: Annotated[Path, typer.Option("-m", "--model", metavar="DIR", help="A model folder.")]
    text: Annotated[
        str | None, typer.Argument(help="A text.", show_default="a text each line of the input")
    ] = None
    source: Annotated[
        Path,
        typer.Option("-i", "--input", metavar="F", readable=False, help="Texts, a line each; - is stdin."),
    ] = Path("-")
    output: Annotated[Path, typer.Option("-o", "--output", metavar="F", help="- is stdout.")] = Path("-")
    as_json: Annotated[
        bool, typer.Option("--json", help="An object a text: label, probability, and those of all labels.")
    ] = False
    overflow: Annotated[
        str, typer.Option(help="A text that is longer than the model reads: cut (and say so) or refuse.")
    ] = "cut"
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1, mps; found by itself.")] = None

    def __post_init__(self) -> None:
        if self.overflow not in OVERFLOW:
            raise UsageError(f"--overflow ({self.overflow}) must be one of {', '.join(OVERFLOW)}")


@takes(Options)
def classify(options: Options) -> None:
    """Say what kind each text is."""
    from regard.cli.streams import reading, refuse_same_file, writing
    from regard.process.device import pick_device
    from regard.tasks.task import expect, load

    refuse_same_file(options.source, options.output)
    expect(options.model, "classify")
    device = pick_device(options.device)
    labels: Labels = load(options.model, device=device, refuses=options.overflow == "refuse")
    if options.text is not None:
        print(_line(labels, next(labels.classify([options.text])), options.as_json), flush=True)
        return
    with reading(options.source) as lines, writing(options.output) as write:
        for label in labels.classify(lines):
            write(_line(labels, label, options.as_json))
    if labels.reader.cut:
        note(
            f"{labels.reader.cut:,} texts were longer than the {labels.reader.longest:,} tokens that are read"
        )


def _line(labels: "Labels", label: "Label", as_json: bool) -> str:
    if not as_json:
        return label.name
    return json.dumps(labels.said(label), ensure_ascii=False)
