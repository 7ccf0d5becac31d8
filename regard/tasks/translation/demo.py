"""`regard demo`: the whole road on phrases that need no download, from text to a scored translator.

Phrases of regard/text/phrasebook.py are written to files in DIR/data; everything after that is what
`regard train` and `regard evaluate` do with anybody's files.
"""

import shlex
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from regard.errors import printable
from regard.tasks.task import command, task_of

if TYPE_CHECKING:
    from regard.data.corpus import Corpus
    from regard.tasks.translation.evaluate import Scores
    from regard.tasks.translation.translator import Translation

Pairs = list[tuple[str, str]]

SPLITS = {"train": 60_000, "valid": 500, "test": 1000}
PRESET = "tiny"
# Phrases are short, endless and without noise: few layers, small steps and no dropout learn them quickest.
SETTINGS = {
    "model.encoder_layers": 2,
    "model.decoder_layers": 2,
    "model.d_ff": 256,
    "model.dropout": 0.0,
    "train.batch_tokens": 1024,
    "train.lr": 0.01,
}
SHOWN = 8
ATTENTION = "attention.html"
PILOT = 20  # phrases that tell how long the others take
SCORING_SHARE, LEAST_SECONDS = 0.2, 10.0  # of the minutes, and seconds, that scoring may take
LEARNED = 0.5  # of the phrases exact: less is a demo that has had too little time
TELLING = 60  # characters of the phrase whose attention is shown


@dataclass(frozen=True)
class Options:
    """What the demo of translation takes."""

    output: Path = Path("runs/demo")
    to: str = "de"
    source: str = "en"
    minutes: float = 1.95
    fresh: bool = False
    device: str | None = None


def demo(options: Options) -> None:
    """Train on a phrasebook, score, translate."""
    from regard.tasks.train import train
    from regard.training.workspace import DATA, refuse_foreign

    refuse_foreign(options.output)
    corpora = write_phrases(options, options.output / DATA)
    result = train(
        corpora["train"],
        out=options.output,
        valid=corpora["valid"],
        preset=PRESET,
        overrides=SETTINGS
        | {"train.minutes": options.minutes, "text.source": options.source, "text.target": options.to},
        fresh=options.fresh,
        device=options.device,
    )
    test = [(pair.src, pair.tgt) for pair in corpora["test"].pairs()]
    scores, found = score_phrases(options, test)
    print(report(test[: len(found)], found, scores))
    if scores.exact < LEARNED:
        _note(f"{result.steps:,} steps were too few to learn the phrases: regard demo --fresh --minutes 10")
    print(f"What every head looked at: {write_attention(options.output, test)}\n")
    print(farewell(options.output, test[0][0]), flush=True)


def _note(message: str) -> None:
    print(printable(message), file=sys.stderr, flush=True)


def write_phrases(
    options: Options, folder: Path, splits: Mapping[str, int] | None = None
) -> "dict[str, Corpus]":
    """The splits of the phrasebook as files; the same arguments write the same bytes."""
    from regard.data.corpus import Corpus
    from regard.text.phrasebook import phrases
    from regard.training.workspace import make

    splits = splits or SPLITS
    streams = {split: phrases(options.to, source=options.source, split=split) for split in splits}
    make(folder)  # after the languages have proved to be known
    names = f"{options.source}-{options.to}"
    _note(f"writing {splits['train']:,} phrases {names} from CLDR to {folder}")
    corpora = {}
    for split, pairs in streams.items():
        chosen = islice(pairs if split == "train" else _once(pairs), splits[split])
        path = folder / f"{split}.{names}.tsv"
        with path.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{src}\t{tgt}\n" for src, tgt in chosen)
        corpora[split] = Corpus(tables=(path,))
    return corpora


def _once(pairs: Iterator[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Each source once: a test that asks the same thing twice measures less than it says."""
    seen: set[str] = set()
    for src, tgt in pairs:
        if src not in seen:
            seen.add(src)
            yield src, tgt


def score_phrases(options: Options, test: Pairs) -> "tuple[Scores, list[str]]":
    """The trained model on phrases that it has never seen: scores and translations.

    A model that has learned nothing writes every phrase to its bound. So this takes a share of the minutes
    at most: some phrases tell how many there is time for.
    """
    from regard.process.device import pick_device
    from regard.tasks.translation.evaluate import compare
    from regard.tasks.translation.load import load_translator

    translator = load_translator(options.output, device=pick_device(options.device))
    found: list[Translation] = []
    began, count = time.perf_counter(), PILOT
    limit = max(LEAST_SECONDS, SCORING_SHARE * options.minutes * 60)
    while count and len(found) < len(test):
        found += translator.stream([src for src, _ in test[len(found) : len(found) + count]])
        seconds = time.perf_counter() - began
        count = int(len(found) * max(0.0, limit / seconds - 1))
    return compare(found, [tgt for _, tgt in test[: len(found)]], seconds=seconds), [
        each.text for each in found
    ]


def write_attention(folder: Path, test: Pairs) -> Path:
    """A page with the attention of one phrase, neither short nor endless, inside the folder."""
    phrase = min((src for src, _ in test), key=lambda src: abs(len(src) - TELLING))
    task_of(folder).look(folder, phrase).save(folder / ATTENTION)
    return folder / ATTENTION


def report(test: Pairs, found: list[str], scores: "Scores") -> str:
    """Scores, then some translations next to their references: the longest of every few."""
    lines = [
        "",
        f"{scores.sentences:,} phrases that training never saw, translated in {scores.seconds:.1f} s:",
        f"BLEU {scores.bleu:.1f}, chrF {scores.chrf:.1f}, exact match {scores.exact:.1%}",
        f"{scores.signature}",
        "",
    ]
    stride = max(1, len(test) // SHOWN)
    for start in range(0, len(test), stride)[:SHOWN]:
        number = max(range(start, min(start + stride, len(test))), key=lambda n: len(test[n][0]))
        src, reference = test[number]
        mark = "" if found[number] == reference else "   <- differs"
        lines += [
            f"  source       {src}",
            f"  translation  {found[number]}{mark}",
            f"  reference    {reference}",
            "",
        ]
    return "\n".join(lines)


def farewell(folder: Path, phrase: str) -> str:
    """The commands to go on with, as they can be typed here."""
    regard, place = command(), shlex.quote(str(folder))
    return "\n".join(
        (
            "Go on with:",
            f"  echo {shlex.quote(phrase)} | {regard} translate -m {place}",
            f"  {regard} look -m {place} {shlex.quote(phrase)} -o {shlex.quote(str(folder / ATTENTION))}",
            f"  {regard} show {place}",
            f"  {regard} train my.en my.de -o runs/mine        # your own two files",
        )
    )
