"""`regard documents`: a model that writes the docstring of Python source, from what this Python brings along.

Documents of regard/text/docstrings.py are written to files in DIR/data; everything after that is what
`regard train --preset document` and `regard evaluate --rouge` do with anybody's files.
"""

import shlex
import time
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.console import note
from regard.cli.options import takes
from regard.errors import DataError

if TYPE_CHECKING:
    from regard.data.corpus import Corpus
    from regard.tasks.translation.evaluate import Scores
    from regard.text.docstrings import Document

PRESET = "document"
# Minutes are a few passes over the modules: many small steps, little dropout, and validation, which reads
# long documents too, is asked seldom.
SETTINGS: dict[str, Any] = {
    "text.vocab_size": 6000,
    "train.batch_tokens": 4096,
    "model.dropout": 0.1,
    "train.valid_every": 500,
}
VALIDATED = 150
SHOWN = 8
WIDTH = 100  # characters of a source that are shown


@dataclass(frozen=True)
class Options:
    """What `regard documents` takes."""

    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="FOLDER",
            readable=False,
            help="Python files to learn from instead.",
            show_default="the standard library",
        ),
    ] = None
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="DIR", help="The model folder to make.")
    ] = Path("runs/documents")
    minutes: Annotated[float, typer.Option(help="Time for training.")] = 8.0
    fresh: Annotated[bool, typer.Option("--fresh", help="Start over instead of resuming.")] = False
    device: Annotated[str | None, typer.Option(help="cpu, cuda, cuda:1, mps; found by itself.")] = None


@takes(Options)
def documents(options: Options) -> None:
    """Learn to write docstrings: source code in, its summary out.

    Reads modules, classes and functions of the Python standard library, trains, and scores on modules that
    training never saw.
    """
    from regard.measure.rouge import require_rouge
    from regard.tasks.train import train
    from regard.training.workspace import DATA, refuse_foreign

    require_rouge()
    refuse_foreign(options.output)
    corpora = write_documents(options.folder, options.output / DATA)
    train(
        corpora["train"],
        out=options.output,
        valid=corpora["valid"],
        preset=PRESET,
        overrides=SETTINGS | {"train.minutes": options.minutes},
        fresh=options.fresh,
        device=options.device,
    )
    test = [(pair.src, pair.tgt) for pair in corpora["test"].pairs()]
    scores, found = score_documents(options, test)
    print(report(test, found, scores))
    print(farewell(options.output), flush=True)


def write_documents(folder: Path | None, out: Path) -> "dict[str, Corpus]":
    """The splits as files; the same Python writes the same bytes."""
    from regard.data.corpus import Corpus
    from regard.text.docstrings import SPLITS, Document, documents
    from regard.training.workspace import make

    splits: dict[str, list[Document]] = {split: [] for split in SPLITS}
    for document in documents(folder):
        splits[document.split].append(document)
    for split, found in splits.items():
        if not found:
            raise DataError(
                f"{folder or 'the standard library'} has no docstrings for {split}; give more modules"
            )
    make(out)
    counts = ", ".join(f"{len(found):,} for {split}" for split, found in splits.items())
    note(f"writing documents to {out}: {counts}")
    splits["valid"] = _spread(splits["valid"], VALIDATED)
    corpora = {}
    for split, found in splits.items():
        path = out / f"{split}.docstrings.tsv"
        with path.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{each.source}\t{each.summary}\n" for each in found)
        corpora[split] = Corpus(tables=(path,))
    return corpora


def _spread(found: "list[Document]", most: int) -> "list[Document]":
    """At most so many, evenly over all modules."""
    return list(islice(found[:: -(-len(found) // most)], most))


def score_documents(options: Options, test: list[tuple[str, str]]) -> "tuple[Scores, list[str]]":
    """The trained model on modules that it has never seen."""
    from regard.process.device import pick_device
    from regard.tasks.translation.evaluate import compare
    from regard.tasks.translation.load import load_translator

    translator = load_translator(options.output, device=pick_device(options.device))
    limit = translator.decode.max_source - 1
    fitting = [
        pair
        for pair, ids in zip(test, translator.tokenizer.encode_batch([src for src, _ in test]), strict=True)
        if len(ids) <= limit
    ]
    if len(fitting) < len(test):
        note(f"{len(test) - len(fitting)} documents have over {limit:,} tokens and are not scored")
    test[:] = fitting
    began = time.perf_counter()
    found = list(translator.stream([src for src, _ in test]))
    seconds = time.perf_counter() - began
    return compare(found, [tgt for _, tgt in test], seconds=seconds, rouge=True), [
        each.text for each in found
    ]


def report(test: list[tuple[str, str]], found: list[str], scores: "Scores") -> str:
    """Scores, then some summaries next to their references, evenly over the test modules."""
    assert scores.rouge is not None
    lines = [
        "",
        f"{scores.sentences:,} documents of modules that training never saw, read in {scores.seconds:.1f} s:",
        f"ROUGE-L {scores.rouge.rouge_l:.1f}, ROUGE-1 {scores.rouge.rouge_1:.1f}, BLEU {scores.bleu:.1f}",
        f"{scores.rouge.signature}; {scores.signature}",
        "",
    ]
    for number in range(0, len(test), max(1, len(test) // SHOWN))[:SHOWN]:
        source, reference = test[number]
        cut = source if len(source) <= WIDTH else source[: WIDTH - 4] + " ..."
        lines += [f"  source     {cut}", f"  written    {found[number]}", f"  docstring  {reference}", ""]
    return "\n".join(lines)


def farewell(folder: Path) -> str:
    """The commands to go on with."""
    place = shlex.quote(str(folder))
    return "\n".join(
        (
            "Go on with:",
            f"  regard translate -m {place} --document -i my_module.py",
            f"  regard show {place}",
            "  regard train articles.txt summaries.txt -o runs/mine --preset document   # your own documents",
        )
    )
