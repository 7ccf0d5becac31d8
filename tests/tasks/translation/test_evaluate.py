"""Scores against sacrebleu called directly."""

from collections.abc import Iterator

import pytest
import sacrebleu
import torch

from regard.errors import DataError
from regard.models.table import TableModel
from regard.tasks.translation.evaluate import HANDFUL, compare, score
from regard.tasks.translation.translator import Translation, Translator
from regard.text.tokenizer import Tokenizer

TEXTS = ["Ein Mann sitzt auf einer Bank.", "Zwei Hunde laufen.", "", "Die Frau lacht über den Witz."]
REFERENCES = [
    "Ein Mann sitzt auf der Bank.",
    "Zwei Hunde  laufen. ",
    "Nichts.",
    "Eine Frau lacht über einen Witz.",
]


def test_scores_are_those_of_sacrebleu() -> None:
    found = [Translation(text, -1.0, False, tokens=3) for text in TEXTS]
    scores = compare(found, REFERENCES, seconds=2.0)
    assert scores.bleu == sacrebleu.corpus_bleu(TEXTS, [REFERENCES]).score
    assert scores.chrf == sacrebleu.corpus_chrf(TEXTS, [REFERENCES]).score
    assert 0 < scores.bleu < 100
    assert "tok:13a" in scores.signature
    assert "case:mixed" in scores.signature
    assert f"version:{sacrebleu.__version__}" in scores.signature
    assert "nc:6" in scores.chrf_signature
    assert (scores.sentences, scores.seconds, scores.tokens_per_second) == (4, 2.0, 6.0)
    assert scores.exact == 0.25  # the reference's spaces are normalised as every line's are


def test_a_translator_is_scored_whole() -> None:
    tokenizer = Tokenizer.train(["the cat sees a dog"] * 9, 0)
    echo = 30.0 * torch.eye(tokenizer.vocab_size)
    copier = Translator(TableModel(torch.zeros_like(echo), echo), tokenizer)
    lines = ["the cat sees a dog", "a dog sees the cat", ""]
    scores = score(copier, iter(lines), iter(lines), beam=2, batch_size=2)
    assert scores.bleu == pytest.approx(100)
    assert scores.exact == 1
    assert scores.sentences == 3
    assert scores.seconds > 0
    assert scores.tokens_per_second > 0


def test_sources_without_references_are_refused_with_both_counts() -> None:
    with pytest.raises(DataError, match="1 sources and 2 references"):
        compare([Translation("a", 0.0, False)], ["a", "b"])


def test_nothing_cannot_be_scored() -> None:
    with pytest.raises(DataError, match="nothing to score"):
        compare([], [])


def test_lines_are_forgotten_once_they_are_counted() -> None:
    held: list[int] = []
    alive: set[int] = set()

    class Line(str):
        def __init__(self, _: str) -> None:
            alive.add(id(self))

        def __del__(self) -> None:
            alive.discard(id(self))

    def translations() -> Iterator[Translation]:
        for number in range(20 * HANDFUL):
            held.append(len(alive))
            yield Translation(Line(f"a {number}"), 0.0, False)

    scores = compare(translations(), (f"a {number}" for number in range(20 * HANDFUL)))
    assert scores.sentences == 20 * HANDFUL
    assert scores.exact == 1
    assert max(held) <= 3 * HANDFUL
    assert held[-1] > 0
