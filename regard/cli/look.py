"""`regard look`: what every head looked at, as a page, a figure or data.

With `--word`, one word's vectors in several sentences; with `--ablate`, which heads a test set needs.
"""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.console import note
from regard.cli.options import takes
from regard.errors import UsageError

if TYPE_CHECKING:
    from regard.look.ablate import Ranking
    from regard.tasks.translation.translator import Translator

PAGE = Path("attention.html")


@dataclass(frozen=True)
class Options:
    """What `regard look` takes."""

    texts: Annotated[
        list[str],
        typer.Argument(
            metavar="TEXT", help="A sentence; several with --word; SRC REF with --ablate.", show_default=False
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
    beam: Annotated[
        int | None, typer.Option(help="Hypotheses kept; 1 is greedy.", show_default="the model's")
    ] = None
    kind: Annotated[str, typer.Option(help="For a figure: cross, encoder or decoder.")] = "cross"
    layer: Annotated[int | None, typer.Option(help="For a figure.", show_default="the sharpest")] = None
    head: Annotated[int | None, typer.Option(help="For a figure.", show_default="the mean of all")] = None
    pieces: Annotated[bool, typer.Option("--pieces", help="For a figure: subwords, not words.")] = False
    word: Annotated[str | None, typer.Option(help="Compare this word's vectors in the sentences given.")] = (
        None
    )
    ablate: Annotated[
        bool, typer.Option("--ablate", help="Rank heads by the BLEU lost on SRC REF without them.")
    ] = False
    limit: Annotated[int, typer.Option(help="Sentences of the test set that --ablate takes.")] = 200
    batch_size: Annotated[int, typer.Option(help="Lines that --ablate translates together.")] = 32


@takes(Options)
def look(options: Options) -> None:
    """Show what every head looked at in a translation."""
    if options.ablate:
        _ablate(options)
    elif options.word is not None:
        _compare(options, options.word)
    else:
        _look(options)


def _look(options: Options) -> None:
    from regard.look.look import ENDINGS
    from regard.tasks.task import task_of

    if len(options.texts) != 1:
        raise UsageError(f"{len(options.texts)} texts given; put the sentence in quotes")
    path = _output(options, ENDINGS)
    walk = path.suffix in (".html", ".json")
    seen = task_of(options.model).look(options.model, options.texts[0], beam=options.beam, vectors=walk)
    if path.suffix in (".svg", ".png"):
        drawn = seen.figure(kind=options.kind, layer=options.layer, head=options.head, pieces=options.pieces)
        path.write_bytes(drawn.to_png() if path.suffix == ".png" else drawn.to_svg().encode())
    else:
        seen.save(path)
    print(seen.translation, flush=True)
    note(f"wrote {path}")


def _compare(options: Options, word: str) -> None:
    from regard.look.context import ENDINGS, compare_word

    path = _output(options, ENDINGS)
    found = compare_word(options.model, word, options.texts)
    found.save(path)
    for row in found.cosine.tolist():
        print("  ".join(f"{value:5.2f}" for value in row))
    note(f"wrote {path}")


def _output(options: Options, endings: tuple[str, ...]) -> Path:
    """Where to write; refused before anything is computed if the ending says nothing."""
    path = options.output or PAGE
    if path.suffix not in endings:
        raise UsageError(f"{path} ends in {path.suffix or 'nothing'}; give one of {', '.join(endings)}")
    return path


def _ablate(options: Options) -> None:
    from regard.tasks.translation.files import corpus_of
    from regard.tasks.translation.translator import load_readable

    if options.output is not None and options.output.suffix != ".json":
        raise UsageError(f"--ablate writes a table and JSON; {options.output} does not end in .json")
    if options.limit < 1:
        raise UsageError(f"limit ({options.limit}) must be at least 1")
    corpus = corpus_of([Path(text) for text in options.texts])
    corpus.check_files()
    pairs = [(pair.src, pair.tgt) for pair, _ in zip(corpus.pairs(), range(options.limit), strict=False)]
    ranking = _rank(options, load_readable(options.model), pairs)
    print(table(ranking), flush=True)
    if options.output is not None:
        options.output.write_text(json.dumps(asdict(ranking), indent=2) + "\n", encoding="utf-8")
        note(f"wrote {options.output}")


def _rank(options: Options, translator: "Translator", pairs: list[tuple[str, str]]) -> "Ranking":
    from regard.look.ablate import rank_heads

    def progress(done: int, total: int) -> None:
        if done == total or done % 10 == 0:
            note(f"{done} of {total} passes over {len(pairs)} sentences")

    return rank_heads(
        translator,
        [src for src, _ in pairs],
        [tgt for _, tgt in pairs],
        beam=options.beam or 1,
        batch_size=options.batch_size,
        progress=progress,
    )


def table(ranking: "Ranking") -> str:
    """The ranking as a person reads it."""
    width = max(len(each.name) for each in ranking.heads)
    lines = [
        f"BLEU {ranking.bleu:.2f} with all heads, {ranking.sentences} sentences, {ranking.signature}",
        "",
    ]
    lines += [f"{'attention':{width}}  head  BLEU without  lost"]
    lines += [
        f"{each.name:{width}}  {each.head:4}  {each.bleu:12.2f}  {each.lost:+.2f}" for each in ranking.heads
    ]
    return "\n".join(lines)
