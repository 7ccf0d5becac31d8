"""`regard train`: files in, a model folder out. The work is regard/training/run.py's.

Settings are laid over each other: the defaults, the preset, the config file, then --set and --minutes.
"""

from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from regard.cli.console import note
from regard.cli.options import takes
from regard.data.address import place
from regard.errors import UsageError

if TYPE_CHECKING:
    from regard.tasks.task import Task
    from regard.training.lesson import Examples
    from regard.training.run import Asked


PAIRED = ("--pair", "--valid-pair")


LEAVING = (  # said before training: afterwards it would be too late
    "A new Transformer has rotary positions where positions.kind is not named. CTranslate2 and ONNX hold it, "
    "Hugging Face has no layout for it: train for that with --set positions.kind=sinusoidal."
)


class Command(TyperCommand):
    """`--valid` and `--pair` take one file or two, and the help ends with every config key."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read `--valid SRC TGT` as two values; typer knows only flags with a fixed number."""
        return super().parse_args(ctx, spread_valid(spread_pairs(args)))

    def format_epilog(self, ctx: Any, formatter: Any) -> None:
        """Every key that --set and a config file take, with its default."""
        from regard.config import known_keys
        from regard.presets import PRESETS

        with formatter.section("Config keys, for --set and TOML files"):
            formatter.write_dl([(key, _shown(default)) for key, default in known_keys().items()], col_max=40)
        with formatter.section("Presets"):
            changes = {name: ", ".join(f"{k}={v}" for k, v in keys.items()) for name, keys in PRESETS.items()}
            formatter.write_dl([(name, text or "the defaults above") for name, text in changes.items()])
        with formatter.section("Where a translator can go"):
            formatter.write_text(LEAVING)


def _shown(default: Any) -> str:
    return str(default).lower() if isinstance(default, bool) else f"{default}" or '""'


def spread_pairs(args: list[str]) -> list[str]:
    """`--pair NAME SRC TGT` as three flags, for typer gives a flag one value; a TSV leaves the last empty.

    >>> spread_pairs(["--pair", "en-de", "a.tsv", "-o", "out"])
    ['--pair', 'en-de', '--pair', 'a.tsv', '--pair', '', '-o', 'out']
    """
    spread: list[str] = []
    rest = list(args)
    while rest and (argument := rest.pop(0)) != "--":
        name, equals, value = argument.partition("=")
        if name not in PAIRED:
            spread.append(argument)
            continue
        given = [value] if equals else []
        while rest and len(given) < 3 and not rest[0].startswith("-"):
            if len(given) == 2 and given[1].removesuffix(".gz").endswith(".tsv"):
                break
            given.append(rest.pop(0))
        for each in (*given, "", "", "")[:3]:
            spread += [name, each]
    return [*spread, *(["--", *rest] if "--" in args else [])]


def spread_valid(args: list[str], *flags: str) -> list[str]:
    """`--valid SRC TGT` as `--valid SRC --valid TGT`; one file if it is named .tsv or nothing follows.

    >>> spread_valid(["--valid", "a.en", "a.de", "-o", "out"])
    ['--valid', 'a.en', '--valid', 'a.de', '-o', 'out']
    >>> spread_valid(["--valid", "pairs.tsv", "more.tsv"])
    ['--valid', 'pairs.tsv', 'more.tsv']
    >>> spread_valid(["--task", "language", "--valid", "a.txt", "b.txt"])  # its files come alone
    ['--task', 'language', '--valid', 'a.txt', 'b.txt']
    """
    if not _in_pairs(args):
        return args
    spread: list[str] = []
    rest = list(args)
    flags = flags or ("--valid",)
    while rest:
        argument = rest.pop(0)
        if argument == "--":
            return [*spread, argument, *rest]
        name, equals, value = argument.partition("=")
        if equals and name in flags:
            argument, rest = name, [value, *rest]
        spread.append(argument)
        if argument in flags and rest:
            first = rest.pop(0)
            spread.append(first)
            is_table = first.removesuffix(".gz").endswith((".tsv", ".conllu"))
            if not is_table and rest and not rest[0].startswith("-"):
                spread += [argument, rest.pop(0)]
    return spread


def _in_pairs(args: list[str]) -> bool:
    """Whether the task that is named takes two files together; a name that means nothing is refused later."""
    from regard.kinds import TASKS
    from regard.tasks.task import task_named

    words = args[: args.index("--")] if "--" in args else args
    named = [after for word, after in pairwise(words) if word == "--task"]
    named += [word.removeprefix("--task=") for word in words if word.startswith("--task=")]
    return not named or named[-1] not in TASKS or task_named(named[-1]).pairs


@dataclass(frozen=True)
class Options:
    """What `regard train` takes."""

    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="The model folder to make.")]
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="SRC TGT | PAIRS.tsv | TEXT...",
            help="Two aligned text files, or one with source, tab, target. Plain or .gz. "
            "Several: lists with commas, a.en,b.en a.de,b.de. A language model: texts and folders of them.",
            parser=place,
            show_default=False,
        ),
    ] = None
    pairs: Annotated[
        list[str] | None,
        typer.Option(
            "--pair",
            metavar="EN-DE SRC TGT",
            help="Several languages in one model: a pair of them and its files; may be repeated.",
        ),
    ] = None
    valid_pairs: Annotated[
        list[str] | None,
        typer.Option("--valid-pair", metavar="EN-DE SRC TGT", help="What to validate such a pair on."),
    ] = None
    valid: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="SRC TGT",
            parser=place,
            help="What to validate on: two files, one PAIRS.tsv, or a text. Without it some is held out.",
        ),
    ] = None
    parses: Annotated[
        Path | None,
        typer.Option(
            metavar="F.conllu",
            readable=False,
            help="Dependency trees of the source, for positions.kind=structural; several with commas.",
        ),
    ] = None
    valid_parses: Annotated[
        Path | None, typer.Option(metavar="F.conllu", readable=False, help="Those of the source of --valid.")
    ] = None
    task: Annotated[str, typer.Option(help="What is learned; a plug-in may bring more.")] = "translation"
    preset: Annotated[
        str | None,
        typer.Option(
            help="tiny, small, base (the paper's), deep or document.",
            show_default="tiny; small from two hours on",
        ),
    ] = None
    config: Annotated[
        Path | None, typer.Option(metavar="F.toml", readable=False, help="A TOML file of settings.")
    ] = None
    overrides: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="One setting, such as train.lr=1e-3; may be repeated."
        ),
    ] = None
    minutes: Annotated[float | None, typer.Option(help="Time budget; the schedule ends with it.")] = None
    finish: Annotated[
        float | None,
        typer.Option(metavar="MINUTES", help="End a run that has begun within so many minutes, and well."),
    ] = None
    fresh: Annotated[bool, typer.Option("--fresh", help="Start over instead of resuming.")] = False
    start_from: Annotated[
        Path | None,
        typer.Option("--from", metavar="DIR", readable=False, help="Train this model further, into -o."),
    ] = None
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1, mps; found by itself.")] = None

    def changes(self) -> dict[str, Any]:
        """What --set and --minutes lay over the preset and the config file."""
        from regard.config import parse_set

        changes = dict(parse_set(text) for text in self.overrides or ())
        return changes if self.minutes is None else changes | {"train.minutes": self.minutes}

    def check(self) -> None:
        """Refuse a slip of the pen before torch is loaded."""
        from regard.config import Config, merge, read_toml
        from regard.presets import preset
        from regard.tasks.task import task_named

        asked = dict(preset(self.preset)) if self.preset else {}
        asked |= read_toml(self.config) if self.config else {}
        if self.start_from is None:
            merge(Config(), task_named(self.task).defaults() | asked | self.changes())


@takes(Options)
def train(options: Options) -> None:
    """Train a model on your data; run again, it goes on."""
    from regard.training.world import joined

    with joined() as world:
        with world.together():
            task, examples = _named(options)
        from regard.training.run import train as run

        run(task, examples, _asked(options))
        if world.first:
            note(f"use it: {task.usage(options.output, '--to LANG' if options.pairs else '')}")


def threes(values: list[str] | None) -> list[list[str]]:
    """Each `--pair` again: its name and its files."""
    found = [list(filter(None, (values or [])[at : at + 3])) for at in range(0, len(values or []), 3)]
    if short := [each for each in found if len(each) < 2]:
        raise UsageError(f"--pair {' '.join(short[0])}: give a pair and its files, --pair en-de SRC TGT")
    return found


def _named(options: Options) -> "tuple[Task, Examples]":
    """The task and its examples; nothing is read yet."""
    from regard.tasks.task import task_named

    task = task_named(options.task)
    own = {name: getattr(options, name) for name in ("parses", "valid_parses")}
    own |= {"pairs": threes(options.pairs), "valid_pairs": threes(options.valid_pairs)}
    options.check()
    files = options.files or []
    if not files and not options.pairs and not options.valid_pairs:
        raise UsageError("name what to train on: SRC TGT, PAIRS.tsv or TEXT...; see regard train --help")
    return task, task.examples(files, options.valid, **{name: each for name, each in own.items() if each})


def _asked(options: Options) -> "Asked":
    """What the run is asked for, beside them."""
    from regard.training.run import Asked

    return Asked(
        options.output,
        options.preset,
        options.config,
        options.changes(),
        options.start_from,
        fresh=options.fresh,
        device=options.device,
        finish=options.finish,
    )
