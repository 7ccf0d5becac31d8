"""`regard distill`: a teacher's folder in, a faster student's folder out.

The work is regard/tasks/translation/distill.py's.
"""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.console import note
from regard.cli.options import takes
from regard.cli.train import Command as Command  # the same words, spread alike

if TYPE_CHECKING:
    from regard.data.corpus import Corpus


@dataclass(frozen=True)
class Options:
    """What `regard distill` takes."""

    model: Annotated[Path, typer.Option("-m", "--model", metavar="TEACHER", help="The teacher's folder.")]
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="The student's folder.")]
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[SRC | SRC TGT | PAIRS.tsv]",
            help="Text to translate, plain or .gz; several with commas. Of pairs the sources are translated.",
            readable=False,
            show_default="what the teacher was trained on",
        ),
    ] = None
    to: Annotated[
        str | None,
        typer.Option(
            metavar="KIND",
            help="A student that writes several tokens at once: parallel, ctc, blockwise. It begins with the "
            "teacher's weights, unless a preset is named.",
        ),
    ] = None
    preset: Annotated[
        str | None,
        typer.Option(help="The student's: deep (6+1 layers), tiny, small, base.", show_default="deep"),
    ] = None
    valid: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="SRC TGT",
            readable=False,
            help="Pairs to validate on. Without it the teacher's, or some pairs are held out.",
        ),
    ] = None
    minutes: Annotated[
        float | None, typer.Option(help="Time for training the student; translating comes before it.")
    ] = None
    originals: Annotated[
        bool, typer.Option("--originals", help="Learn the original pairs beside the translations.")
    ] = False
    beam: Annotated[int | None, typer.Option(help="Of the teacher.", show_default="its own")] = None
    config: Annotated[
        Path | None, typer.Option(metavar="F.toml", readable=False, help="A TOML file of settings.")
    ] = None
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="One setting of the student; may be repeated."),
    ] = None
    fresh: Annotated[bool, typer.Option("--fresh", help="Start over, the translations too.")] = False
    device: Annotated[str | None, typer.Option(help="For training: cpu, cuda, mps; found by itself.")] = None

    def changes(self) -> dict[str, Any]:
        """What --set and --minutes lay over the preset and the config file."""
        from regard.config import parse_set

        changes = dict(parse_set(text) for text in self.overrides or ())
        return changes if self.minutes is None else changes | {"train.minutes": self.minutes}


@takes(Options)
def distill(options: Options) -> None:
    """Train a faster student on what a teacher translates. Run again, it goes on where it stopped."""
    from regard.config import Config, merge, read_toml
    from regard.presets import preset
    from regard.tasks.translation.files import corpus_of

    sources = text_of(options.files) if options.files else None
    valid = corpus_of(options.valid) if options.valid else None
    asked = read_toml(options.config) if options.config else {}
    if options.to is None or options.preset:
        merge(Config(), dict(preset(options.preset or "deep")) | asked | options.changes())
    from regard.tasks.translation.distill import distill as run

    run(
        options.model,
        sources,
        out=options.output,
        preset=options.preset,
        valid=valid,
        originals=options.originals,
        overrides=options.changes(),
        config_file=options.config,
        fresh=options.fresh,
        device=options.device,
        beam=options.beam,
        to=options.to,
    )
    note(f"translate with it: regard translate -m {shlex.quote(str(options.output))} < text")


def text_of(files: list[Path]) -> "Corpus":
    """Pairs, or one text alone, which then stands on both sides."""
    from regard.tasks.translation.files import corpus_of

    if len(files) == 1 and not files[0].name.removesuffix(".gz").endswith(".tsv"):
        return corpus_of([files[0], files[0]])
    return corpus_of(files)
