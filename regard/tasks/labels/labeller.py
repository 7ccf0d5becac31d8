"""Texts and words to labels, with probabilities; and how often they are right.

    labels = regard.load("runs/mood").label(["a fine film"])       [Labelled(...)]

Before this file: the reader of `regard.tasks.encoder`; after it: `regard classify`, `regard tag`.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.errors import DataError, ModelError
from regard.foreign import loads
from regard.measure.labels import confusion, label_scores
from regard.measure.score import Score
from regard.models.folder import load_folder
from regard.tasks.encoder import EmbedConfig
from regard.tasks.encoder.load import equip
from regard.tasks.encoder.reader import WINDOW, Reader, Reads, Rows
from regard.tasks.labels.examples import Example, Labelled
from regard.tasks.labels.lesson import LABELS, cut_words
from regard.tasks.task import Evaluation, Judge

# A word with what is joined to it, the shortened forms of English by themselves, or a sign.
_SHORT = r"n['’]t\b|['’](?:s|re|ve|ll|d|m)\b|\w+?(?=n['’]t\b)"
_WORD = re.compile(rf"{_SHORT}|\w+(?:[-./]\w+)*|[^\w\s]", re.IGNORECASE)


@dataclass(frozen=True)
class Label:
    """What something is, and how sure that is; `chances` has every label's probability, in their order."""

    name: str
    probability: float
    chances: tuple[float, ...]


class Labels(Reads):
    """A model with its tokenizer and the names of its labels; `regard.load` makes one from a folder."""

    def __init__(self, model: Any, reader: Reader, names: Sequence[str], *, words: bool) -> None:
        self.model, self.reader, self.names, self.words = model.eval(), reader, list(names), words
        self.task = "tag" if words else "classify"

    def row(self, text: str) -> list[int]:
        """The ids of a text as they are read; words are what stands between spaces."""
        if not self.words:
            return self.reader.rows([text])[0]
        rows = [
            ids for ids, _ in cut_words(self.reader.tokenizer, text.split() or [text], self.reader.longest)
        ]
        return rows[0]

    def told(self, text: str) -> str:
        """The label of a text with how sure that is, or its words with their tags."""
        if self.words:
            found = next(self.tag([text.split()]))
            return " ".join(f"{word}/{each.name}" for word, each in zip(text.split(), found, strict=True))
        label = next(self.classify([text]))
        return f"{label.name} ({label.probability:.0%})"

    def said(self, label: Label) -> dict[str, Any]:
        """A label with the probabilities of all, as --json and the server say it."""
        chances = dict(zip(self.names, label.chances, strict=True))
        return {"label": label.name, "probability": label.probability, "labels": chances}

    def classify(self, texts: Iterable[str], *, threads: int = 0) -> Iterator[Label]:
        """The label of each text, in their order."""

        def work(rows: list[list[int]]) -> list[Label]:
            spoken = self._spoken(rows)
            return self._named(self.reader.pooled(rows, self.model.pooling, threads=threads), spoken)

        return self.reader.stream(texts, work)

    def tag(self, sentences: Iterable[Sequence[str]], *, threads: int = 0) -> Iterator[list[Label]]:
        """A label for each word of each sentence, in their order."""
        left = iter(sentences)
        while window := list(islice(left, WINDOW)):
            rows, spots, owner = [], [], []
            for number, words in enumerate(window):
                for ids, places in (
                    cut_words(self.reader.tokenizer, words, self.reader.longest) if words else ()
                ):
                    rows.append(ids)
                    spots.append(places)
                    owner.append(number)
            found: list[list[Label]] = [[] for _ in window]
            ends = [list(chain.from_iterable(own)) for own in spots]  # first and last piece in turn
            pieces = self.reader.picked(rows, ends, threads=threads)
            named = iter(self._named((pieces[0::2] + pieces[1::2]) / 2))
            for number, own in zip(owner, spots, strict=True):
                found[number] += islice(named, len(own))
            yield from found

    @torch.inference_mode()
    def _spoken(self, rows: Rows) -> Tensor | None:
        """What runs of tokens say of each row (N, L), if the model has a table of them."""
        if self.model.grams is None:
            return None
        out = torch.empty(len(rows), len(self.names), device=self.reader.device)
        for numbers, inputs in self.reader.batches(rows):
            out[numbers] = self.model.grams(inputs.ids, inputs.real)
        return out

    @torch.inference_mode()
    def _named(self, vectors: Tensor, spoken: Tensor | None = None) -> list[Label]:
        """The labels of vectors (N, D), with what else speaks for labels (N, L)."""
        said = self.model.output(vectors).float()
        chances = self.model.agreed([said] if spoken is None else [said, spoken]).softmax(-1)
        best = chances.argmax(-1).tolist()
        return [
            Label(self.names[number], each[number], tuple(each))
            for number, each in zip(best, chances.tolist(), strict=True)
        ]


def words_of(line: str) -> list[str]:
    """The words of a line, where nothing says what they are.

    >>> words_of("She didn't see the well-known U.S. dog's tail, did she?")[:8]
    ['She', 'did', "n't", 'see', 'the', 'well-known', 'U.S', '.']
    """
    return [found[0] for found in _WORD.finditer(line)]


def tags_of(words: Sequence[str], labels: Sequence[Label]) -> dict[str, Any]:
    """Words and their tags, as --json and the server say it."""
    return {
        "words": words,
        "tags": [label.name for label in labels],
        "probabilities": [label.probability for label in labels],
    }


def load_labels(
    folder: Path,
    *,
    words: bool,
    refuses: bool = False,
    precision: str = "auto",
    engine: str = "auto",
    **options: Any,
) -> Labels:
    """The model in a folder; `precision` and `engine` as `regard.tasks.encoder.load` has them."""
    loaded = load_folder(folder, **options)
    try:
        names = loads(loaded.files[LABELS])
    except (KeyError, ValueError) as error:
        raise ModelError(f"{folder} has no {LABELS} that can be read; copy the folder again") from error
    model: Any = loaded.model
    count = model.output.weight.shape[0]
    if not isinstance(names, list) or len(names) != count or not all(isinstance(name, str) for name in names):
        raise ModelError(f"{folder / LABELS} must name {count} labels; copy the folder again")
    longest = loaded.config.of(EmbedConfig).max_length or loaded.config.data.max_length
    reader = Reader(model.body, loaded.tokenizer, max_length=longest, refuses=refuses)
    equip(reader, precision=precision, engine=engine)
    return Labels(model, reader, names, words=words)


def evaluation(labels: Labels, data: Labelled) -> Evaluation:
    """Accuracy and macro F1 on files; a label that the model does not know is always wrong."""
    examples = _examples(data)
    return Evaluation(
        _scores(labels, examples),
        {"examples": len(examples), "labels": sum(len(example.labels) for example in examples)},
    )


def judge(labels: Labels, data: Labelled, limit: int) -> Judge:
    """The same on the first `limit` examples, again and again: heads may be off."""
    examples = _examples(data, limit)
    return Judge(labels.model, lambda: _scores(labels, examples), f"{len(examples):,} examples")


def _examples(data: Labelled, limit: int | None = None) -> list[Example]:
    """What is measured on."""
    examples = list(islice(data.read(data.train), limit))
    if not examples:
        raise DataError(f"{', '.join(map(str, data.train))}: there is nothing to measure on")
    return examples


def _scores(labels: Labels, examples: Sequence[Example]) -> dict[str, Score]:
    wanted = [label for example in examples for label in example.labels]
    if labels.words:
        given = [each.name for found in labels.tag(example.words for example in examples) for each in found]
    else:
        given = [each.name for each in labels.classify(example.words[0] for example in examples)]
    names = sorted({*labels.names, *wanted})
    number = {name: place for place, name in enumerate(names)}
    table = confusion([number[name] for name in wanted], [number[name] for name in given], len(names))
    return label_scores(table)
