"""`regard check`: what is wrong with this data, line by line, and what it will do to training."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import takes
from regard.data.address import place
from regard.errors import DataError


@dataclass(frozen=True)
class Options:
    """What `regard check` takes."""

    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="SRC TGT | PAIRS.tsv | TEXT...",
            help="The files that training would be given, in the same form.",
            parser=place,
            show_default=False,
        ),
    ]
    task: Annotated[str, typer.Option(help="What would be learned from them.")] = "translation"
    examples: Annotated[int, typer.Option(min=0, help="Lines shown of each kind.")] = 3
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object instead of lines.")] = False


@takes(Options)
def check(options: Options) -> None:
    """Say what is wrong with files to learn from.

    Lists what is suspicious with counts, examples and line numbers, and what training will do about it.
    """
    from regard.tasks.task import task_named

    report = task_named(options.task).check(options.files, examples=options.examples)
    if options.as_json:
        print(json.dumps(report.to_dict(), ensure_ascii=False))
    else:
        print(report.text(), end="")
    if not report.trains:
        raise DataError("training would refuse these files; the report says where and why")
