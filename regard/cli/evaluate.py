"""`regard evaluate`: BLEU and chrF of a model on a test set, ROUGE if asked for, and a gate for scripts."""

import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.options import takes
from regard.errors import QualityError

if TYPE_CHECKING:
    from regard.decoding.evaluate import Scores

# The object that --json prints; scripts rely on these names.
JSON_FIELDS = ("bleu", "chrf", "signature", "sentences", "seconds", "tokens_per_second")
ROUGE_FIELDS = ("rouge_1", "rouge_2", "rouge_l")  # after them with --rouge


@dataclass(frozen=True)
class Options:
    """What `regard evaluate` takes."""

    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="SRC REF",
            help="Source and reference, or one PAIRS.tsv.",
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
    batch_size: Annotated[int, typer.Option(help="Lines translated together; changes no result.")] = 32
    min_bleu: Annotated[float | None, typer.Option(help="Exit with code 3 if BLEU is below this.")] = None
    rouge: Annotated[
        bool, typer.Option("--rouge", help="ROUGE too, for short texts made from long ones.")
    ] = False
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
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1, mps; found by itself.")] = None


@takes(Options)
def evaluate(options: Options) -> None:
    """Score a model: BLEU and chrF by sacreBLEU."""
    scores = _score(options)
    print(_as_json(scores) if options.as_json else describe(scores), flush=True)
    if options.min_bleu is not None and scores.bleu < options.min_bleu:
        raise QualityError(f"BLEU {scores.bleu:.2f} is below the gate of {options.min_bleu:.2f}")


def _score(options: Options) -> "Scores":
    from regard.cli.files import corpus_of
    from regard.decoding.evaluate import score
    from regard.decoding.rouge import require_rouge
    from regard.engine.load import load
    from regard.training.device import pick_device

    if options.rouge:
        require_rouge()
    corpus = corpus_of(options.files, options.parses)
    corpus.check_files()
    device = pick_device(options.device)
    translator = load(
        options.model,
        device=device,
        precision=options.precision,
        engine=options.engine,
        shortlist=options.shortlist,
    )
    if translator.note:
        print(translator.note, file=sys.stderr)
    if corpus.parses:
        translator = translator.parsed(*corpus.parses)
    pairs = list(corpus.pairs())
    return score(
        translator,
        [pair.src for pair in pairs],
        [pair.tgt for pair in pairs],
        beam=options.beam,
        batch_size=options.batch_size,
        rouge=options.rouge,
    )


def _as_json(scores: "Scores") -> str:
    fields = {name: getattr(scores, name) for name in JSON_FIELDS}
    if scores.rouge:
        fields |= {name: getattr(scores.rouge, name) for name in ROUGE_FIELDS}
    return json.dumps(fields)


def describe(scores: "Scores") -> str:
    """The scores as a person reads them."""
    lines = [
        f"BLEU      {scores.bleu:6.2f}   {scores.signature}",
        f"chrF      {scores.chrf:6.2f}   {scores.chrf_signature}",
        f"exact     {scores.exact:6.1%}   of {scores.sentences:,} lines equal to their reference",
        f"time      {scores.seconds:6.1f} s {scores.tokens_per_second:,.0f} tokens/s",
    ]
    if rouge := scores.rouge:
        parts = f"ROUGE-1 {rouge.rouge_1:.2f}, ROUGE-2 {rouge.rouge_2:.2f}; {rouge.signature}"
        lines.insert(2, f"ROUGE-L   {rouge.rouge_l:6.2f}   {parts}")
    return "\n".join(lines)
