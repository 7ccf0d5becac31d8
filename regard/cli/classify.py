"""`regard classify`: a text a line in, its label a line out; or pictures. The work is the tasks'."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.console import note
from regard.cli.options import (
    Device,
    Engine,
    Model,
    On,
    Overflow,
    Part,
    Precision,
    refuse_overflow,
    refuse_sharing,
    takes,
)
from regard.data.address import place
from regard.errors import DataError, UsageError

if TYPE_CHECKING:
    from regard.cli.bulk import Answer
    from regard.tasks.image.classifier import Classifier
    from regard.tasks.labels.labeller import Label, Labels


@dataclass(frozen=True)
class Options:
    """What `regard classify` takes."""

    model: Model
    given: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TEXT | PICTURE...",
            help="A text, or picture files, as the model wants them.",
            show_default="one each line of the input",
        ),
    ] = None
    source: Annotated[
        Path,
        typer.Option(
            "-i",
            "--input",
            metavar="F",
            parser=place,
            help="Texts, or paths of pictures, a line each; an address; - is stdin.",
        ),
    ] = Path("-")
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="F", parser=place, help="- is stdout.")
    ] = Path("-")
    as_json: Annotated[
        bool, typer.Option("--json", help="An object each: label, probability, and those of all labels.")
    ] = False
    top: Annotated[int, typer.Option(help="Pictures: so many of the likeliest labels.")] = 1
    overflow: Overflow = "cut"
    part: Part = None
    on: On = None
    precision: Precision = "auto"
    engine: Engine = "auto"
    device: Device = None

    def __post_init__(self) -> None:
        refuse_overflow(self.overflow)
        if self.top < 1:
            raise UsageError(f"--top ({self.top}) must be 1 or more")
        if self.given:
            refuse_sharing(self.part, self.on)


@takes(Options)
def classify(options: Options) -> None:
    """Say what kind each text or picture is."""
    from regard.cli.bulk import answer_lines

    answer_lines(options, answerer, options.given or None)


def answerer(options: Options) -> "Answer":
    """Texts, or paths of pictures, to their labels."""
    from regard.tasks.task import expect, task_of

    if task_of(options.model).name == "image":
        return _pictures(options)
    expect(options.model, "classify")
    return _texts(options)


def _texts(options: Options) -> "Answer":
    from regard.process.device import pick_device
    from regard.tasks.task import load

    labels: Labels = load(
        options.model,
        device=pick_device(options.device),
        refuses=options.overflow == "refuse",
        precision=options.precision,
        engine=options.engine,
    )
    if labels.reader.note:
        note(labels.reader.note)

    def answer(texts: Iterable[str]) -> Iterator[str]:
        for label in labels.classify(texts):
            yield _line(labels, label, options.as_json)
        if labels.reader.cut:
            cut, longest = labels.reader.cut, labels.reader.longest
            note(f"{cut:,} texts were longer than the {longest:,} tokens that are read")

    return answer


def _line(labels: "Labels", label: "Label", as_json: bool) -> str:
    if not as_json:
        return label.name
    return json.dumps(labels.said(label), ensure_ascii=False)


def _pictures(options: Options) -> "Answer":
    from regard.process.device import pick_device
    from regard.tasks.task import load

    classifier: Classifier = load(options.model, device=pick_device(options.device))
    return lambda paths: _seen(options, classifier, paths)


def _seen(options: Options, classifier: "Classifier", paths: Iterable[str]) -> Iterator[str]:
    """A line a picture: where it lies, then labels and probabilities; one that cannot be read has none."""
    from regard.errors import RegardError

    given: list[str] = []
    lost, alone = 0, len(options.given or ()) == 1  # then what is wrong with it is all there is to say

    def passed() -> Iterator[str]:
        for path in paths:
            given.append(path)
            yield path

    for number, found in enumerate(classifier.try_all(passed())):
        path = given[number]
        if isinstance(found, RegardError):
            lost += 1
            if not alone:
                note(str(found))
            yield (
                json.dumps({"file": path, "error": str(found)}, ensure_ascii=False)
                if options.as_json
                else path
            )
        elif options.as_json:
            count = options.top if options.top > 1 else None
            yield json.dumps({"file": path} | classifier.said(found, count), ensure_ascii=False)
        else:
            best = classifier.top(found, options.top)
            yield "\t".join([path, *(word for name, chance in best for word in (name, f"{chance:.3f}"))])
        if alone and isinstance(found, RegardError):
            raise found
    if lost:
        raise DataError(f"{lost:,} of {len(given):,} pictures could not be read; the lines above say why")
