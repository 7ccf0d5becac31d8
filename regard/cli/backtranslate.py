"""`regard backtranslate`: pairs and text in the target language in, a model folder out.

The work is regard/tasks/translation/backtranslate.py's.
"""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from regard.cli.console import note
from regard.cli.options import takes
from regard.cli.train import Command as Command  # the same words, spread alike
from regard.data.address import place


@dataclass(frozen=True)
class Options:
    """What `regard backtranslate` takes."""

    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="SRC TGT | PAIRS.tsv",
            help="The real pairs, as regard train takes them.",
            parser=place,
            show_default=False,
        ),
    ]
    mono: Annotated[
        Path,
        typer.Option(
            metavar="F",
            parser=place,
            help="Text in the target language, line by line; several with commas.",
        ),
    ]
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="The model folder to make.")]
    reverse: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            readable=False,
            help="A model that translates from the target to the source.",
            show_default="one is trained on the pairs",
        ),
    ] = None
    valid: Annotated[
        list[Path] | None,
        typer.Option(metavar="SRC TGT", parser=place, help="Pairs to validate on; else some are held out."),
    ] = None
    ratio: Annotated[
        float | None,
        typer.Option(help="Synthetic pairs for each real one in an epoch; data.synthetic.", show_default="1"),
    ] = None
    minutes: Annotated[float | None, typer.Option(help="Time for training the model.")] = None
    reverse_minutes: Annotated[
        float | None, typer.Option(help="Time for training the reverse model.", show_default="the same")
    ] = None
    beam: Annotated[int | None, typer.Option(help="Of the reverse model.", show_default="its own")] = None
    preset: Annotated[
        str | None, typer.Option(help="Of both models: tiny, small, base, deep.", show_default="by the time")
    ] = None
    config: Annotated[
        Path | None, typer.Option(metavar="F.toml", readable=False, help="A TOML file of settings, for both.")
    ] = None
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="One setting of both models; may be repeated."),
    ] = None
    fresh: Annotated[bool, typer.Option("--fresh", help="Start over, all of it.")] = False
    device: Annotated[str | None, typer.Option(help="For training: cpu, cuda, mps; found by itself.")] = None

    def changes(self) -> dict[str, Any]:
        """What --set, --minutes and --ratio lay over the preset and the config file."""
        from regard.config import parse_set

        changes = dict(parse_set(text) for text in self.overrides or ())
        named = {"train.minutes": self.minutes, "data.synthetic": self.ratio}
        return changes | {key: value for key, value in named.items() if value is not None}


@takes(Options)
def backtranslate(options: Options) -> None:
    """Learn from text in the target language too. Run again, it goes on where it stopped."""
    from regard.tasks.translation.backtranslate import backtranslate as run

    run(
        *options.files,
        mono=options.mono,
        out=options.output,
        reverse=options.reverse,
        valid=options.valid,
        preset=options.preset,
        config_file=options.config,
        overrides=options.changes(),
        reverse_minutes=options.reverse_minutes,
        beam=options.beam,
        fresh=options.fresh,
        device=options.device,
    )
    note(f"translate with it: regard translate -m {shlex.quote(str(options.output))} < text")
