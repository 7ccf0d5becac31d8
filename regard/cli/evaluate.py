"""`regard evaluate`: how good a model is on a test set, as its task measures it, and a gate for scripts."""

import json
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.console import note
from regard.cli.options import From, To, takes
from regard.errors import QualityError, UsageError


@dataclass(frozen=True)
class Options:
    """What `regard evaluate` takes."""

    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="SRC REF | TEXT...",
            help="What the task measures on: source and reference, or one PAIRS.tsv; texts.",
            readable=False,
            show_default=False,
        ),
    ]
    model: Annotated[Path, typer.Option("-m", "--model", metavar="DIR", help="A model folder.")]
    parses: Annotated[
        Path | None,
        typer.Option(
            metavar="F.conllu",
            readable=False,
            help="Dependency trees of the source, if the model reads them.",
        ),
    ] = None
    beam: Annotated[
        int | None, typer.Option(help="Hypotheses kept; 1 is greedy.", show_default="the model's")
    ] = None
    iterations: Annotated[
        int | None,
        typer.Option(help="model.kind=parallel: passes over all places.", show_default="the model's"),
    ] = None
    lengths: Annotated[
        int | None,
        typer.Option(help="model.kind=parallel: lengths that are tried.", show_default="the model's"),
    ] = None
    batch_size: Annotated[int, typer.Option(help="Lines translated together; changes no result.")] = 32
    min_bleu: Annotated[float | None, typer.Option(help="Exit with code 3 if BLEU is below this.")] = None
    rouge: Annotated[
        bool, typer.Option("--rouge", help="ROUGE too, for short texts made from long ones.")
    ] = False
    tokenize: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="BLEU's words: 13a, intl, zh, ja-mecab, ko-mecab, char, none; auto: by language.",
        ),
    ] = "auto"
    ter: Annotated[bool, typer.Option("--ter", help="TER too: edits for each word of the reference.")] = False
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="F", help="Keep the translations.")
    ] = None
    against: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", readable=False, help="Another model on the same lines: is the difference luck?"
        ),
    ] = None
    comet: Annotated[
        Path | None,
        typer.Option(metavar="F.ckpt", readable=False, help="COMET's weights: says how to score with them."),
    ] = None
    card: Annotated[bool, typer.Option("--card", help="Write the scores into the model's card.")] = False
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object instead of lines.")] = False
    precision: Annotated[str, typer.Option(help="int8, bf16, fp32; auto: the fastest that is as good.")] = (
        "auto"
    )
    engine: Annotated[str, typer.Option(help="native, readable; auto: native where it knows the model.")] = (
        "auto"
    )
    shortlist: Annotated[
        bool,
        typer.Option("--shortlist", help="Choose from the folder's shortlist (regard shortlist): faster."),
    ] = False
    source: From = ""
    target: To = ""
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1, mps; found by itself.")] = None


@takes(Options)
def evaluate(options: Options) -> None:
    """Score a model on what it has not seen, as its task does."""
    from regard.process.device import pick_device
    from regard.tasks.task import task_of

    if options.comet:
        raise UsageError(
            "COMET (unbabel-comet 2.2.7) needs numpy below 2 and transformers below 5, which cannot stand "
            "beside Regard's: keep the translations with -o OUT; in an environment of its own, "
            f"comet-score -s SRC -t OUT -r REF --model {options.comet}"
        )
    task = task_of(options.model)
    asked = {
        name: value
        for name, value in vars(options).items()
        if name not in ("files", "model", "min_bleu", "as_json", "card", "device")
        and value != _DEFAULTS[name]
    }
    asked["device"] = pick_device(options.device)
    found = task.evaluate(options.model, options.files, **asked)
    for each in found.notes:
        note(each)
    print(json.dumps(found.fields()) if options.as_json else found.text(), flush=True)
    if options.card:
        from regard.models.card import add_scores

        add_scores(options.model, ", ".join(path.name for path in options.files), found.scores)
    gate, bleu = options.min_bleu, found.scores.get("bleu")
    if gate is not None and bleu is None:
        raise UsageError(f"--min-bleu is a gate for translators; {options.model} has no BLEU")
    if gate is not None and bleu is not None and bleu.value < gate:
        raise QualityError(f"BLEU {bleu.value:.2f} is below the gate of {gate:.2f}")


_DEFAULTS = {each.name: each.default for each in fields(Options)}
