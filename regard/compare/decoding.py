"""Ways of decoding side by side, measured: quality, length, speed, and how often the decoder runs in turn.

Each row is a model folder and one way to write with it. The first folder is the teacher: the others are also
compared with what it writes greedily. Before this file: `regard.tasks.translation`; after it: the command
line.
"""

import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from regard.compare.report import table
from regard.config.file import read_config
from regard.errors import UsageError
from regard.measure.bleu import translation_scores
from regard.tasks.task import expect
from regard.tasks.translation.load import load_translator
from regard.tasks.translation.translator import Translation, Translator

PASSES = (1, 4, 10)  # of a model that refines what it wrote
ALONE = 100  # lines that are translated one by one, for the latency
COUNTED = 40  # lines on which the passes of a blockwise model are counted
WARM = 3

Said = Callable[..., None]


@dataclass(frozen=True)
class Decoder:
    """A model folder and a way to write with it."""

    folder: Path
    kind: str
    label: str
    options: Mapping[str, Any]

    @property
    def name(self) -> str:
        """For the table."""
        return f"{self.folder.resolve().name}: {self.label}"


@dataclass(frozen=True)
class Measured:
    """What a decoder gave."""

    name: str
    kind: str
    bleu: float
    chrf: float
    repeated: float  # words that say the one before again, per cent
    agreement: float  # chrF against what the teacher writes greedily
    length: float  # per cent of words too many or too few, line by line
    latency: float  # seconds of one line alone, the median
    throughput: float  # lines a second in batches of 32
    steps: float  # times that the decoder runs, one after the other, for a line
    signature: str


def decoders(folders: Sequence[Path]) -> Iterator[Decoder]:
    """The ways to write with each folder, as its kind of model has them."""
    for folder in folders:
        expect(folder, "translation")
        kind = read_config(folder).model.kind
        if kind == "parallel":
            for count in PASSES:
                label = "one shot" if count == 1 else f"{count} passes"
                yield Decoder(folder, kind, label, {"iterations": count, "beam": 1})
        elif kind in ("ctc", "blockwise"):
            yield Decoder(folder, kind, kind, {"beam": 1})
        else:
            yield Decoder(folder, kind, "greedy", {"beam": 1})
            yield Decoder(folder, kind, "beam 5", {"beam": 5})


def measure(
    folders: Sequence[Path], pairs: Sequence[tuple[str, str]], said: Said, *, alone: int = ALONE
) -> list[Measured]:
    """Every decoder on all pairs; the first folder is the teacher."""
    if not pairs:
        raise UsageError("there is nothing to measure on: the test set has no lines")
    if not 1 <= alone <= 100_000:
        raise UsageError(f"lines for the latency ({alone}) must be between 1 and 100000")
    todo = list(decoders(folders))
    taught: list[str] = []
    found: list[Measured] = []
    loaded: tuple[Path, Translator] | None = None
    for number, each in enumerate(todo):
        said(each.name, number / len(todo))
        if loaded is None or loaded[0] != each.folder:
            loaded = each.folder, load_translator(each.folder)
        one, outputs = _measured(each, loaded[1], pairs, taught, alone)
        taught = taught or outputs
        found.append(one)
    return found


def _measured(
    each: Decoder,
    translator: Translator,
    pairs: Sequence[tuple[str, str]],
    taught: Sequence[str],
    alone: int,
) -> tuple[Measured, list[str]]:
    """One row; `taught` is what the teacher writes, nothing while that is being found out."""
    sources, references = [src for src, _ in pairs], [tgt for _, tgt in pairs]
    list(translator.stream(sources[:WARM], **each.options))
    began = time.perf_counter()
    outputs: list[Translation] = list(translator.stream(sources, **each.options))
    seconds = time.perf_counter() - began
    texts = [output.text for output in outputs]
    scores = translation_scores(texts, references)
    same = translation_scores(texts, taught or texts)["chrf"].value
    return Measured(
        each.name,
        each.kind,
        scores["bleu"].value,
        scores["chrf"].value,
        100 * repeated(texts),
        same,
        100 * wrong_length(texts, references),
        latency(translator, sources[:alone], each.options),
        len(sources) / seconds,
        _steps(each, translator, sources, outputs),
        scores["bleu"].signature,
    ), texts


def latency(translator: Translator, sources: Sequence[str], options: Mapping[str, Any]) -> float:
    """Seconds of one line alone: the median."""
    taken = []
    for source in sources:
        began = time.perf_counter()
        list(translator.stream([source], batch_size=1, window=1, **options))
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)


def repeated(texts: Sequence[str]) -> float:
    """The share of words that are the word before again.

    >>> repeated(["a dog dog runs", "yes"])
    0.2
    """
    words = [text.split() for text in texts]
    count = sum(map(len, words))
    return sum(one == other for line in words for one, other in pairwise(line)) / max(1, count)


def wrong_length(texts: Sequence[str], references: Sequence[str]) -> float:
    """Words too many or too few, line by line, against all words of the references.

    >>> wrong_length(["a b", "a"], ["a b c", "a"])
    0.25
    """
    off = sum(abs(len(t.split()) - len(r.split())) for t, r in zip(texts, references, strict=True))
    return off / max(1, sum(len(reference.split()) for reference in references))


def _steps(
    each: Decoder, translator: Translator, sources: Sequence[str], outputs: Sequence[Translation]
) -> float:
    """How often the decoder runs for a line, one after the other."""
    if each.kind == "parallel":
        return float(each.options["iterations"])
    if each.kind == "ctc":
        return 1.0
    if each.kind == "blockwise":
        return _passes(translator, sources[:COUNTED])
    return statistics.fmean(output.tokens for output in outputs)


def _passes(translator: Translator, sources: Sequence[str]) -> float:
    """Passes of a blockwise model, counted where they can be seen: in the readable search."""
    import torch

    from regard.data.inputs import pad_sources
    from regard.decoding.blockwise import written
    from regard.decoding.search import Rules
    from regard.decoding.way import Wanted

    tokenizer, counts = translator.tokenizer, []
    for source in filter(None, sources):
        ids = [[*tokenizer.encode(source), tokenizer.end_id]]
        rules = Rules.of(
            translator.decode,
            [len(ids[0])],
            vocab_size=tokenizer.target_vocab_size,
            specials=tokenizer.specials,
        )
        with torch.inference_mode():
            state = translator.model.start(pad_sources(ids))
            counts.append(
                written(translator.model, state, rules, torch.tensor(0), Wanted(translator.decode))[1]
            )
    return statistics.fmean(counts)


def decoding_report(found: Sequence[Measured]) -> str:
    """The table."""
    header = [
        *("decoder", "BLEU", "chrF", "repeated words, %", "chrF against the teacher's greedy"),
        *("error in length, %", "ms a line alone", "lines/s in batches", "steps in turn"),
    ]
    rows = [
        [
            each.name,
            f"{each.bleu:.2f}",
            f"{each.chrf:.2f}",
            f"{each.repeated:.2f}",
            f"{each.agreement:.1f}",
            f"{each.length:.1f}",
            f"{1000 * each.latency:.2f}",
            f"{each.throughput:,.0f}",
            f"{each.steps:.1f}",
        ]
        for each in found
    ]
    return table(header, rows)


__all__ = ["Decoder", "Measured", "decoders", "decoding_report", "measure"]
