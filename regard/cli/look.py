"""`regard look`: what every head looked at, as a page, a figure or data.

With `--beside`, the same sentence by another model too; with `--word`, one word's vectors in several
sentences; with `--ablate`, which heads a test set needs.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.console import note
from regard.cli.options import From, To, takes
from regard.errors import UsageError

if TYPE_CHECKING:
    from regard.look.ablate import Ranking

PAGE = Path("attention.html")


@dataclass(frozen=True)
class Options:
    """What `regard look` takes."""

    texts: Annotated[
        list[str],
        typer.Argument(
            metavar="TEXT", help="A text; several with --word; test files with --ablate.", show_default=False
        ),
    ]
    model: Annotated[Path, typer.Option("-m", "--model", metavar="DIR", help="A model folder.")]
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="F",
            help="By its ending: .html .svg .png .json .pharaoh.",
            show_default=str(PAGE),
        ),
    ] = None
    beside: Annotated[
        list[Path] | None,
        typer.Option(metavar="DIR", help="Another model that is given the same text; may be repeated."),
    ] = None
    beam: Annotated[
        int | None, typer.Option(help="Hypotheses kept; 1 is greedy.", show_default="the model's")
    ] = None
    tokens: Annotated[
        int | None, typer.Option(help="Tokens that a language model writes on.", show_default="24")
    ] = None
    temperature: Annotated[
        float | None, typer.Option(help="Draw them instead of taking the likeliest.", show_default="no draw")
    ] = None
    seed: Annotated[int, typer.Option(help="Of what is drawn.")] = 1
    kind: Annotated[
        str,
        typer.Option(
            help="For a figure: cross, encoder, decoder; alignment of model.kind=ctc.",
            show_default="cross, or what is there",
        ),
    ] = ""
    layer: Annotated[int | None, typer.Option(help="For a figure.", show_default="the sharpest")] = None
    head: Annotated[int | None, typer.Option(help="For a figure.", show_default="the mean of all")] = None
    pieces: Annotated[bool, typer.Option("--pieces", help="For a figure: subwords, not words.")] = False
    word: Annotated[str | None, typer.Option(help="Compare this word's vectors in the sentences given.")] = (
        None
    )
    ablate: Annotated[
        bool, typer.Option("--ablate", help="Rank heads by what the score of test files loses without them.")
    ] = False
    limit: Annotated[int, typer.Option(help="Sentences, examples or rows of text that --ablate takes.")] = 200
    batch_size: Annotated[int, typer.Option(help="Lines that --ablate translates together.")] = 32
    source: From = ""
    target: To = ""


@takes(Options)
def look(options: Options) -> None:
    """Show what every head looked at."""
    if options.ablate:
        _ablate(options)
    elif options.word is not None:
        _compare(options, options.word)
    elif options.beside:
        _beside(options, options.beside)
    else:
        _look(options)


def _look(options: Options) -> None:
    from regard.look.look import ENDINGS
    from regard.tasks.task import task_of

    if len(options.texts) != 1:
        raise UsageError(f"{len(options.texts)} texts given; put the sentence in quotes")
    path = _output(options, ENDINGS)
    walk = path.suffix in (".html", ".json")
    seen = task_of(options.model).look(options.model, options.texts[0], vectors=walk, **_own(options))
    if path.suffix in (".svg", ".png"):
        drawn = seen.figure(kind=options.kind, layer=options.layer, head=options.head, pieces=options.pieces)
        path.write_bytes(drawn.to_png() if path.suffix == ".png" else drawn.to_svg().encode())
    else:
        seen.save(path)
    print(seen.answer, flush=True)
    for number, each in enumerate(getattr(seen, "passes", ()), 1):
        note(f"pass {number}: {each.text}")
    note(f"wrote {path}")


def _beside(options: Options, others: list[Path]) -> None:
    from regard.look.beside import ENDINGS, look_beside

    if len(options.texts) != 1:
        raise UsageError(f"{len(options.texts)} texts given; put the sentence in quotes")
    path = _output(options, ENDINGS)
    seen = look_beside(
        [options.model, *others], options.texts[0], vectors=path.suffix == ".html", **_own(options)
    )
    if path.suffix in (".svg", ".png"):
        drawn = seen.figure(kind=options.kind, layer=options.layer, head=options.head, pieces=options.pieces)
        path.write_bytes(drawn.to_png() if path.suffix == ".png" else drawn.to_svg().encode())
    else:
        seen.save(path)
    for each in seen.looks:
        print(f"{each.origin.name}\t{each.answer}", flush=True)
    note(f"wrote {path}")


def _own(options: Options) -> dict[str, Any]:
    """What was asked for that only some tasks know."""
    asked = {name: getattr(options, name) for name in ("beam", "tokens", "source", "target")}
    asked = {name: value for name, value in asked.items() if value not in (None, "")}
    if options.temperature is not None:
        from regard.decoding.sampling import Sampling

        asked["sampling"] = Sampling(options.temperature, seed=options.seed)
    elif options.seed != 1:
        asked["seed"] = options.seed
    return asked


def _compare(options: Options, word: str) -> None:
    from regard.look.context import ENDINGS, compare_word

    path = _output(options, ENDINGS)
    found = compare_word(_directed(options), word, options.texts)
    found.save(path)
    for row in found.cosine.tolist():
        print("  ".join(f"{value:5.2f}" for value in row))
    note(f"wrote {path}")


def _directed(options: Options) -> Any:
    """The folder; of several pairs of languages, what writes the one that is asked for."""
    if not options.source and not options.target:
        return options.model
    from regard.tasks.task import expect, load

    expect(options.model, "translation")
    return load(options.model, source=options.source, target=options.target)


def _output(options: Options, endings: tuple[str, ...]) -> Path:
    """Where to write; refused before anything is computed if the ending says nothing."""
    path = options.output or PAGE
    if path.suffix not in endings:
        raise UsageError(f"{path} ends in {path.suffix or 'nothing'}; give one of {', '.join(endings)}")
    return path


def _ablate(options: Options) -> None:
    from regard.look.ablate import rank_heads
    from regard.tasks.task import task_of, with_article

    if options.output is not None and options.output.suffix != ".json":
        raise UsageError(f"--ablate writes a table and JSON; {options.output} does not end in .json")
    if options.limit < 1:
        raise UsageError(f"limit ({options.limit}) must be at least 1")
    files = [Path(text) for text in options.texts]
    task = task_of(options.model)
    more = {} if options.beam is None else {"beam": options.beam}
    if more and task.name != "translation":
        raise UsageError(f"--beam means nothing to {with_article(task.noun)}")
    judge = task.judge(options.model, files, limit=options.limit, batch_size=options.batch_size, **more)

    def progress(done: int, total: int) -> None:
        if done == total or done % 10 == 0:
            note(f"{done} of {total} passes over {judge.what}")

    ranking = rank_heads(judge.model, judge.measure, progress=progress)
    print(table(ranking, judge.what), flush=True)
    if options.output is not None:
        options.output.write_text(json.dumps(asdict(ranking), indent=2) + "\n", encoding="utf-8")
        note(f"wrote {options.output}")


def table(ranking: "Ranking", what: str) -> str:
    """The ranking as a person reads it."""
    width, digits = max(len(each.name) for each in ranking.heads), ranking.digits
    signature = f", {ranking.signature}" if ranking.signature else ""
    without = f"{ranking.label} without"
    lines = [f"{ranking.label} {ranking.value:.{digits}f} with all heads, {what}{signature}", ""]
    lines += [f"{'attention':{width}}  head  {without}  lost"]
    lines += [
        f"{each.name:{width}}  {each.head:4}  {each.value:{len(without)}.{digits}f}  {each.lost:+.{digits}f}"
        for each in ranking.heads
    ]
    return "\n".join(lines)
