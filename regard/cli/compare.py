"""`regard compare`: the attention family side by side, trained on the same data for the same time.

With --cost, what one layer of each kind costs on this machine, beside theory; with --theorem, attention that
is a convolution. The work is that of regard/compare/.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

from regard.cli.console import note, page
from regard.cli.options import takes
from regard.errors import UsageError

if TYPE_CHECKING:
    from regard.compare.family import Comparison, Said
    from regard.compare.trial import Outcome

# Phrases of the default data; few are scored on, because a variant that has not learned writes long lines.
SPLITS = {"train": 60_000, "valid": 200, "test": 300}
OURS = (
    "data",
    "variants",
    "results",
    "cost",
    "theorem",
    "decoding",
)  # what a folder of comparisons holds, by stem


class Command(TyperCommand):
    """`--valid` and `--test` take one file or two."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read `--test SRC TGT` as two values; typer knows only flags with a fixed number."""
        from regard.cli.train import spread_valid

        return super().parse_args(ctx, spread_valid(args, "--valid", "--test"))


def _files(text: str) -> Any:
    return typer.Option(metavar="FILES", readable=False, help=text)


@dataclass(frozen=True)
class Options:
    """What `regard compare` takes."""

    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[VARIANTS.toml] [FILES]",
            help="What to compare (a TOML table of settings for each name) and what to train on. "
            "Without them: the task's family, on data that are always there.",
            readable=False,
            show_default=False,
        ),
    ] = None
    task: Annotated[
        str, typer.Option(help="What is learned: translation, language, both, speech, image, gan.")
    ] = "translation"
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="DIR", help="Where tables and pictures go.")
    ] = Path("runs/compare")
    minutes: Annotated[float, typer.Option(help="Training time of each variant.")] = 0.5
    valid: Annotated[list[Path] | None, _files("What to validate on while training.")] = None
    test: Annotated[list[Path] | None, _files("What to score on; needed with files of your own.")] = None
    preset: Annotated[str, typer.Option(help="What all variants begin with: tiny, small, base, deep.")] = (
        "tiny"
    )
    overrides: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="A setting of all variants; may be repeated."),
    ] = None
    fresh: Annotated[bool, typer.Option("--fresh", help="Train everything again.")] = False
    as_json: Annotated[bool, typer.Option("--json", help="JSON on stdout instead of a table.")] = False
    cost: Annotated[bool, typer.Option("--cost", help="What one layer costs, against theory.")] = False
    lengths: Annotated[str, typer.Option(help="With --cost: the lengths L.")] = (
        "64,128,256,512,1024,2048,4096"
    )
    widths: Annotated[str, typer.Option(help="With --cost: the widths d.")] = "64,128,256,512,1024"
    seconds: Annotated[float, typer.Option(help="With --cost: time for measuring.")] = 80.0
    decoding: Annotated[
        bool,
        typer.Option(
            "--decoding",
            help="Ways to write with the model folders that are named, the teacher first, on --test.",
        ),
    ] = False
    theorem: Annotated[
        bool, typer.Option("--theorem", help="Attention that is a convolution, and where its heads look.")
    ] = False


@takes(Options)
def compare(options: Options) -> None:
    """The attention family side by side: quality, time, memory."""
    if options.decoding:
        compare_decoding(options)
    elif options.cost or options.theorem:
        if options.cost and options.theorem:
            raise UsageError("--cost and --theorem are two comparisons; ask for one")
        if options.files:
            raise UsageError(f"--cost and --theorem take no files, and {options.files[0]} was given")
        (compare_cost if options.cost else show_theorem)(options)
    else:
        compare_family(options)


def compare_decoding(options: Options) -> None:
    """The table of decoders: printed, written and drawn."""
    if options.cost or options.theorem:
        raise UsageError("--decoding, --cost and --theorem are three comparisons; ask for one")
    if not options.files or not options.test:
        raise UsageError(
            "--decoding needs model folders, the teacher first, and --test SRC REF to measure on"
        )
    folder = make_folder(options.output)
    from regard.compare.decoding import decoding_report, measure
    from regard.compare.picture import draw_decoding
    from regard.tasks.translation.files import corpus_of

    pairs = [(pair.src, pair.tgt) for pair in corpus_of(options.test).pairs()]
    with progress() as said:
        found = measure(options.files, pairs, said)
    text, facts = decoding_report(found), [asdict(each) for each in found]
    under = [
        f"scored on {', '.join(path.name for path in options.test)}, {found[0].signature}",
        f"on {machine()}",
    ]
    lines = "\n".join(f"- {line}" for line in under)
    write(folder / "decoding.md", f"# Ways of decoding side by side\n\n{text}\n\n{lines}\n")
    write(folder / "decoding.json", json.dumps(facts, indent=2) + "\n")
    show(text, facts, as_json=options.as_json)
    drawn = draw_decoding(found, folder / "decoding")
    note(f"written: {folder / 'decoding.md'}, decoding.json, {', '.join(path.name for path in drawn)}")


def compare_cost(options: Options) -> None:
    """The table of theory and measurement: printed, written and drawn."""
    lengths, widths = numbers("--lengths", options.lengths), numbers("--widths", options.widths)
    if not options.seconds > 0:
        raise UsageError(f"--seconds ({options.seconds:g}) must be above 0")
    folder = make_folder(options.output)
    from regard.compare.cost import Sizes, measure
    from regard.compare.picture import draw_cost
    from regard.compare.report import cost_facts, cost_report

    sizes = Sizes(lengths, widths)
    with progress() as said:
        found = measure(sizes, seconds=options.seconds, said=said)
    text, facts = cost_report(found, sizes), [cost_facts(each, sizes) for each in found]
    write(folder / "cost.md", f"# One layer on this machine\n\n{text}\n")
    write(folder / "cost.json", json.dumps(facts, indent=2) + "\n")
    drawn = draw_cost(found, sizes, folder / "cost")
    show(text, facts, as_json=options.as_json)
    note(f"written: {folder / 'cost.md'}, cost.json, {', '.join(path.name for path in drawn)}")


def show_theorem(options: Options) -> None:
    """A convolution and the attention that is made of its weights: how far apart, and a picture."""
    folder = make_folder(options.output)
    import torch

    from regard.attention.convolution import SHARP, from_convolution
    from regard.compare.picture import draw_heads

    torch.manual_seed(1)
    layer = torch.nn.Conv2d(3, 8, 3, padding="same")
    image = torch.randn(2, 3, 16, 16)
    twin = from_convolution(layer.weight, layer.bias)
    with torch.inference_mode():
        apart = (twin(image) - layer(image)).abs().max().item()
        weights = twin.weights(7, 7).numpy()
    drawn = draw_heads(weights, (7, 7), twin.centres.tolist(), folder / "theorem")
    text = (
        f"A 3×3 convolution from 3 to 8 channels, and {len(twin.centres)} heads of attention made of its "
        f"weights (α = {SHARP:g}), on two images of 16×16 pixels: the largest difference is {apart:.1e}."
    )
    show(
        text,
        {"heads": len(twin.centres), "alpha": SHARP, "largest_difference": apart},
        as_json=options.as_json,
    )
    note(f"written: {', '.join(str(path) for path in drawn)}")


def compare_family(options: Options) -> None:
    """Train every variant, then the table: printed, written and drawn."""
    from regard.compare.variants import family, read_variants
    from regard.tasks.task import task_named

    tables = [path for path in options.files or () if path.suffix == ".toml"]
    if len(tables) > 1:
        raise UsageError(f"{len(tables)} TOML files given; one names the variants")
    variants = read_variants(tables[0]) if tables else family(task_named(options.task))
    comparison = plan(options, [path for path in options.files or () if path.suffix != ".toml"])
    from regard.compare.family import run_family
    from regard.compare.picture import draw_family
    from regard.compare.report import family_report

    with progress() as said:
        outcomes = run_family(comparison, variants, said)
    folder, text = options.output, family_report(outcomes)
    facts = {
        "terms": comparison.facts(),
        "machine": machine(),
        "variants": [asdict(each) for each in outcomes],
    }
    write(folder / "results.md", f"# The family side by side\n\n{text}\n\n{terms(comparison, outcomes)}\n")
    write(folder / "results.json", json.dumps(facts, indent=2) + "\n")
    drawn = draw_family(outcomes, folder / "results")
    show(text, facts, as_json=options.as_json)
    note(f"written: {folder / 'results.md'}, results.json, {', '.join(path.name for path in drawn)}")


def plan(options: Options, files: list[Path]) -> "Comparison":
    """What is trained and scored on: a person's own files, or what the task's family is compared on."""
    from regard.config import parse_set
    from regard.tasks.task import task_named

    task = task_named(options.task)
    changes = dict(parse_set(text) for text in options.overrides or ())
    if files and not options.test:
        raise UsageError("name files to score on with --test: quality is measured on what training never saw")
    if not files and (options.test or options.valid):
        raise UsageError("--test and --valid go with files to train on; give those too, or none")
    held = {"train": files, "valid": options.valid or [], "test": options.test or []}
    if files:
        task.read(files)  # what is no such files is said first
    folder = make_folder(options.output)
    if not files:
        module, _, name = task.family().data.partition(":")
        (folder / "data").mkdir(exist_ok=True)
        held, settings = getattr(import_module(module), name)(folder / "data")
        changes = settings | changes
    from regard.compare.family import Comparison

    return Comparison(folder, task, held, options.preset, changes, options.minutes, options.fresh)


def phrasebook(folder: Path) -> tuple[dict[str, list[Path]], dict[str, Any]]:
    """The demo's phrases, with its settings."""
    from regard.tasks.translation import demo

    corpora = demo.write_phrases(demo.Options(), folder, SPLITS)
    settings = demo.SETTINGS | {"text.source": "en", "text.target": "de"}
    return {split: list(corpus.paths) for split, corpus in corpora.items()}, settings


def machine() -> str:
    """Where it was measured."""
    import platform

    import torch

    from regard import __version__

    count = torch.get_num_threads()
    threads = "1 thread" if count == 1 else f"{count} threads"
    return f"{platform.machine()}, {threads}, torch {torch.__version__}, regard {__version__}"


def terms(comparison: "Comparison", outcomes: "list[Outcome]") -> str:
    """The terms of a comparison as lines under its table."""
    held = [score for each in outcomes for score in each.named().values()]
    signature = next((score.signature for score in held if score.signature), "")
    settings = ", ".join(f"{key}={value}" for key, value in comparison.overrides.items())
    lines = [
        f"{comparison.minutes:g} minutes of training each, preset {comparison.preset}"
        + (f", {settings}" if settings else ""),
        f"trained on {', '.join(path.name for path in comparison.files['train'])}",
        f"scored on {', '.join(path.name for path in comparison.files['test'])}"
        + (f", {signature}" if signature else ""),
        f"on {machine()}",
    ]
    return "\n".join(f"- {line}" for line in lines)


def numbers(flag: str, text: str) -> tuple[int, ...]:
    """Whole numbers in a list with commas, in order, each once; two at least make a line.

    >>> numbers("--lengths", "64,16")
    (16, 64)
    """
    try:
        found = sorted({int(word) for word in text.split(",")})
    except ValueError:
        raise UsageError(f"{flag} takes whole numbers with commas between them, not {text!r}") from None
    if len(found) < 2 or not 1 <= found[0] <= found[-1] <= 1_000_000:
        raise UsageError(f"{flag} ({text}) must be at least two different numbers from 1 to 1000000")
    return tuple(found)


def make_folder(folder: Path) -> Path:
    """The folder, if it can be written and holds nothing but comparisons."""
    if folder.exists() and not folder.is_dir():
        raise UsageError(f"{folder} is a file; comparisons need a folder")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        foreign = sorted(path.name for path in folder.iterdir() if path.name.partition(".")[0] not in OURS)
        if foreign:
            raise UsageError(f"{folder} holds other files ({foreign[0]}); choose another folder")
        probe = folder / "results.part"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise UsageError(f"cannot write into {folder}: {error.strerror}") from error
    return folder


def write(path: Path, text: str) -> None:
    """A file of results; whole or not at all."""
    from regard.atomic import write_text

    write_text(path, text)


def show(text: str, facts: Any, *, as_json: bool) -> None:
    """The result on stdout: JSON, or Markdown, which a terminal sees drawn."""
    console = None if as_json else page()
    if as_json:
        print(json.dumps(facts, ensure_ascii=False))
    elif console is None:
        print(text)
    else:
        from rich.markdown import Markdown

        console.print(Markdown(text))


@contextmanager
def progress() -> "Iterator[Said]":
    """A bar on stderr if a person looks at it; elsewhere the lasting messages, a line each."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield lambda text, share, *, lasting=False: note(text) if lasting else None
        return
    columns = (BarColumn(bar_width=24), TextColumn("{task.percentage:3.0f}%"), TimeElapsedColumn())
    with Progress(*columns, TextColumn("{task.description}"), console=console, transient=True) as bar:
        task = bar.add_task("", total=1.0)

        def said(text: str, share: float, *, lasting: bool = False) -> None:
            if lasting:
                bar.console.print(text, markup=False, soft_wrap=True)
            bar.update(task, completed=share, description=text)

        yield said
