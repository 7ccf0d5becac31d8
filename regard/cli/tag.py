"""`regard tag`: a sentence a line in, its words with their tags a line out. The work is regard/tasks/labels'.

Words are cut at spaces and before punctuation, or at spaces alone (`--words`), as a treebank has them.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import tee
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.console import note
from regard.cli.options import Device, Engine, Model, Part, Precision, takes
from regard.errors import UsageError

if TYPE_CHECKING:
    from regard.tasks.labels.labeller import Labels


@dataclass(frozen=True)
class Options:
    """What `regard tag` takes."""

    model: Model
    text: Annotated[
        str | None, typer.Argument(help="A sentence.", show_default="a sentence each line of the input")
    ] = None
    source: Annotated[
        Path,
        typer.Option("-i", "--input", metavar="F", readable=False, help="A sentence a line; - is stdin."),
    ] = Path("-")
    output: Annotated[Path, typer.Option("-o", "--output", metavar="F", help="- is stdout.")] = Path("-")
    words: Annotated[bool, typer.Option("--words", help="Words are what stands between spaces.")] = False
    as_json: Annotated[
        bool, typer.Option("--json", help="An object a sentence: words, tags, probabilities.")
    ] = False
    part: Part = None
    precision: Precision = "auto"
    engine: Engine = "auto"
    device: Device = None

    def __post_init__(self) -> None:
        if self.part and self.text is not None:
            raise UsageError("--part shares out the lines of a file; give it with -i FILE")


@takes(Options)
def tag(options: Options) -> None:
    """Say what each word is."""
    from regard.cli.parts import part_of
    from regard.cli.streams import reading, refuse_same_file, writing
    from regard.process.device import pick_device
    from regard.tasks.labels.labeller import words_of
    from regard.tasks.task import expect, load

    refuse_same_file(options.source, options.output)
    part = part_of(options.part, options.source, options.output)
    if part and part.there(options.model):
        return
    expect(options.model, "tag")
    device = pick_device(options.device)
    labels: Labels = load(options.model, device=device, precision=options.precision, engine=options.engine)
    if labels.reader.note:
        note(labels.reader.note)
    whole = part.reading() if part else reading(options.source)
    with whole as lines, part.writing() if part else writing(options.output) as write:
        given = lines if options.text is None else iter([options.text])
        cut = str.split if options.words else words_of
        for line in _tagged(labels, map(cut, given), options.as_json):
            write(line)


def _tagged(labels: "Labels", sentences: Iterator[list[str]], as_json: bool) -> Iterator[str]:
    from regard.tasks.labels.labeller import tags_of

    ours, theirs = tee(sentences)
    for words, found in zip(ours, labels.tag(theirs), strict=True):
        if as_json:
            yield json.dumps(tags_of(words, found), ensure_ascii=False)
        else:
            yield " ".join(f"{word}/{label.name}" for word, label in zip(words, found, strict=True))
