"""`regard shortlist`: learns which target tokens go with which source tokens, and keeps it in the folder.

`regard translate --shortlist` then chooses from these alone. The work is regard/engine/shortlist.py's.
"""

import shlex
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.console import note
from regard.cli.options import takes
from regard.errors import ModelError, UsageError

if TYPE_CHECKING:
    from regard.models.folder import Loaded


@dataclass(frozen=True)
class Options:
    """What `regard shortlist` takes."""

    model: Annotated[Path, typer.Option("-m", "--model", metavar="DIR", help="A model folder.")]
    files: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[SRC TGT | PAIRS.tsv]",
            help="Pairs to learn from, such as it was trained on.",
            readable=False,
            show_default="the token store in the folder",
        ),
    ] = None
    pairs: Annotated[int, typer.Option(help="Pairs to read at most.")] = 100_000
    best: Annotated[int, typer.Option(help="Target tokens kept for a source token.")] = 64
    frequent: Annotated[int, typer.Option(help="Frequent target tokens that are always allowed.")] = 1000

    def __post_init__(self) -> None:
        for name in ("pairs", "best", "frequent"):
            if getattr(self, name) < 1:
                raise UsageError(f"--{name} ({getattr(self, name)}) must be at least 1")


@takes(Options)
def shortlist(options: Options) -> None:
    """Learn which words to expect: a faster output layer."""
    from regard.tasks.task import expect
    from regard.tasks.translation.files import corpus_of

    corpus = corpus_of(options.files) if options.files else None
    from regard.engine.shortlist import FILE, learn
    from regard.engine.weights import unsupported
    from regard.models.folder import load_folder
    from regard.process.progress import build_reporter, duration

    expect(options.model, "translation")
    held = load_folder(options.model)
    reason = unsupported(held.model)
    if reason is not None:
        raise ModelError(
            f"{options.model}: a shortlist is for the native engine, which cannot run it: {reason}"
        )
    total, pairs = _pairs(options, held, corpus)
    began = time.perf_counter()
    with build_reporter() as reporter:

        def said(read: int) -> None:
            spent = time.perf_counter() - began
            left = f"  {duration(spent / read * (total - read))} left" if total else ""
            whole = f" of {total:,}" if total else ""
            reporter.advanced(spent, read / total if total else 0.0, f"{read:,}{whole} pairs{left}")

        model: Any = held.model
        found = learn(model, held.tokenizer, pairs, best=options.best, frequent=options.frequent, said=said)
    found.save(options.model, held.tokenizer)
    per_token = len(found.ids) / max(1, sum(map(bool, found.starts[1:] - found.starts[:-1])))
    note(
        f"{options.model / FILE}: {per_token:.1f} tokens for a source token, {len(found.always)} for all; "
        f"use it with: regard translate -m {shlex.quote(str(options.model))} --shortlist"
    )


def _pairs(options: Options, held: "Loaded", corpus: Any) -> tuple[int, Iterator[Any]]:
    """How many pairs of ids there are (0: not known), and the pairs."""
    from regard.data.filter import judge
    from regard.data.store import reopen_store

    if corpus is not None:
        judged = (each for chunk in judge(corpus.pairs(), held.tokenizer, held.config.data) for each in chunk)
        kept = ((each.src, each.tgt) for each in judged if not each.reason)
        return 0, islice(kept, options.pairs)
    store = reopen_store(options.model / "store" / "train")
    if store is None:
        raise UsageError(f"{options.model} holds no token store to learn from; name the pairs: SRC TGT")
    sizes = held.tokenizer.vocab_size, held.tokenizer.target_vocab_size
    if any(side.largest >= size for side, size in zip((store.src, store.tgt), sizes, strict=True)):
        raise ModelError(f"{options.model / 'store'} is of another vocabulary; name the pairs: SRC TGT")
    count = min(len(store), options.pairs)
    rows = [i * len(store) // count for i in range(count)]
    return count, ((src.tolist(), tgt.tolist()) for src, tgt in map(store.pair, rows))
