"""`regard embed`: lines in, vectors out; or how near two files are. The work is regard/tasks/embed's."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
    from regard.tasks.embed.embedder import Embedder


@dataclass(frozen=True)
class Options:
    """What `regard embed` takes."""

    model: Model
    source: Annotated[
        Path,
        typer.Option(
            "-i", "--input", metavar="F", parser=place, help="Texts, a line each; an address; - is stdin."
        ),
    ] = Path("-")
    output: Annotated[
        Path,
        typer.Option(
            "-o",
            "--output",
            metavar="F",
            parser=place,
            help="F.npy: one array (lines, D); any other: a list of numbers a line; - is stdout.",
        ),
    ] = Path("-")
    similar: Annotated[
        Path | None,
        typer.Option(
            metavar="F2", readable=False, help="Instead: the cosine of each line with the same line of F2."
        ),
    ] = None
    top: Annotated[
        int, typer.Option(min=0, help="With --similar: the nearest lines in all of F2, so many.")
    ] = 0
    pooling: Annotated[str | None, typer.Option(help="mean, first, max.", show_default="the model's")] = None
    normalise: Annotated[
        bool | None, typer.Option(help="Vectors of length 1.", show_default="the model's")
    ] = None
    overflow: Overflow = "cut"
    part: Part = None
    on: On = None
    precision: Precision = "auto"
    engine: Engine = "auto"
    device: Device = None

    def __post_init__(self) -> None:
        refuse_overflow(self.overflow)
        if self.top and self.similar is None:
            raise UsageError("--top is how many lines of --similar F2 are shown, which was not given")
        if self.similar is not None:
            refuse_sharing(self.part, self.on, "shares out lines; --similar compares whole files")


@takes(Options)
def embed(options: Options) -> None:
    """Turn lines into vectors, or compare them."""
    from regard.cli.bulk import answer_lines
    from regard.cli.streams import reading, refuse_same_file

    if options.similar is None and (options.output.suffix != ".npy" or options.part or options.on):
        answer_lines(options, answerer)
        return
    refuse_same_file(options.source, options.output)
    embedder = _embedder(options)
    with reading(options.source) as lines:
        if options.similar is not None:
            _compare(options, embedder, list(lines))
        else:
            _save(options.output, embedder, lines)
    _say_cut(embedder)


def answerer(options: Options) -> "Answer":
    """Lines to lists of numbers, by a model that is loaded."""
    embedder = _embedder(options)

    def answer(lines: Iterable[str]) -> Iterator[str]:
        for each in embedder.stream(lines):
            yield json.dumps(each.tolist())
        _say_cut(embedder)

    return answer


def _say_cut(embedder: "Embedder") -> None:
    if embedder.reader.cut:
        note(
            f"{embedder.reader.cut:,} texts were longer than the {embedder.reader.longest:,} tokens that the "
            "model reads and were cut there"
        )


def _embedder(options: Options) -> "Embedder":
    from regard.process.device import pick_device
    from regard.tasks.embed.embedder import Embedder
    from regard.tasks.encoder import EmbedConfig, open_embedder

    device = pick_device(options.device)
    made = open_embedder(options.model, device=device, precision=options.precision, engine=options.engine)
    if made.reader.note:
        note(made.reader.note)
    asked: dict[str, Any] = {"pooling": options.pooling, "normalise": options.normalise}
    given = {name: value for name, value in asked.items() if value is not None}
    how = EmbedConfig(**(vars(made.how) | given))
    return Embedder.of(made.reader, how, refuses=options.overflow == "refuse")


def _write(path: Path, lines: Iterable[str]) -> None:
    from regard.cli.streams import writing

    with writing(path) as write:
        for line in lines:
            write(line)


def _save(path: Path, embedder: "Embedder", lines: Iterable[str]) -> None:
    """One array, written as it comes; how many rows there are is known at the end, and set then."""
    import numpy as np
    from numpy.lib import format as npy

    def header(rows: int) -> dict[str, Any]:
        return {"descr": "<f4", "fortran_order": False, "shape": (rows, embedder.width)}

    try:
        file = path.open("wb")
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error
    with file:
        npy.write_array_header_1_0(file, header(0))
        begin, rows = file.tell(), 0
        for vector in embedder.stream(lines):
            file.write(np.ascontiguousarray(vector, "<f4").tobytes())
            rows += 1
        file.seek(0)
        npy.write_array_header_1_0(file, header(rows))  # numpy leaves room for the number to grow
        assert file.tell() == begin


def _compare(options: Options, embedder: "Embedder", ours: list[str]) -> None:
    """Cosines line by line, or for each line the nearest of the other file."""
    from regard.cli.streams import reading
    from regard.tasks.embed.embedder import cosines, nearest

    assert options.similar is not None
    with reading(options.similar) as lines:
        theirs = list(lines)
    if not options.top and len(ours) != len(theirs):
        raise DataError(
            f"{options.source} has {len(ours):,} lines and {options.similar} {len(theirs):,}; lines are "
            "compared one by one, or give --top to search"
        )
    if not theirs:
        raise DataError(f"{options.similar} is empty; there is nothing to compare with")
    one, other = embedder.embed(ours), embedder.embed(theirs)
    if not options.top:
        _write(options.output, (f"{value:.6f}" for value in cosines(one, other).tolist()))
        return

    def found() -> Iterator[str]:
        for line, best in zip(ours, nearest(one, other, options.top), strict=True):
            near = [{"line": row + 1, "cosine": round(value, 6), "text": theirs[row]} for row, value in best]
            yield json.dumps({"text": line, "nearest": near}, ensure_ascii=False)

    _write(options.output, found())
