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
from regard.cli.options import Device, Engine, Model, On, Part, Precision, refuse_sharing, takes
from regard.data.address import place

if TYPE_CHECKING:
    from regard.cli.bulk import Answer
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
        typer.Option(
            "-i", "--input", metavar="F", parser=place, help="A sentence a line; an address; - is stdin."
        ),
    ] = Path("-")
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="F", parser=place, help="- is stdout.")
    ] = Path("-")
    words: Annotated[bool, typer.Option("--words", help="Words are what stands between spaces.")] = False
    as_json: Annotated[
        bool, typer.Option("--json", help="An object a sentence: words, tags, probabilities.")
    ] = False
    part: Part = None
    on: On = None
    precision: Precision = "auto"
    engine: Engine = "auto"
    device: Device = None

    def __post_init__(self) -> None:
        if self.text is not None:
            refuse_sharing(self.part, self.on)


@takes(Options)
def tag(options: Options) -> None:
    """Say what each word is."""
    from regard.cli.bulk import answer_lines

    answer_lines(options, answerer, None if options.text is None else [options.text])


def answerer(options: Options) -> "Answer":
    """Sentences to words with their tags, by a model that is loaded."""
    from regard.process.device import pick_device
    from regard.tasks.labels.labeller import words_of
    from regard.tasks.task import expect, load

    expect(options.model, "tag")
    device = pick_device(options.device)
    labels: Labels = load(options.model, device=device, precision=options.precision, engine=options.engine)
    if labels.reader.note:
        note(labels.reader.note)
    cut = str.split if options.words else words_of
    return lambda lines: _tagged(labels, map(cut, lines), options.as_json)


def _tagged(labels: "Labels", sentences: Iterator[list[str]], as_json: bool) -> Iterator[str]:
    from regard.tasks.labels.labeller import tags_of

    ours, theirs = tee(sentences)
    for words, found in zip(ours, labels.tag(theirs), strict=True):
        if as_json:
            yield json.dumps(tags_of(words, found), ensure_ascii=False)
        else:
            yield " ".join(f"{word}/{label.name}" for word, label in zip(words, found, strict=True))
