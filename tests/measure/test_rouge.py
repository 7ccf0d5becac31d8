"""ROUGE against its formula, written out."""

import builtins
import re
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import UsageError
from regard.measure.rouge import rouge
from regard.tasks.translation.evaluate import compare
from regard.tasks.translation.translator import Translation

pytest.importorskip("rouge_score", reason="rouge-score is not installed")


def words(text: str) -> list[str]:
    return re.findall("[a-z0-9]+", text.lower())


def longest(a: list[str], b: list[str]) -> int:
    """The longest common subsequence, by its recursion over a table."""
    table = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, x in enumerate(a):
        for j, y in enumerate(b):
            table[i + 1][j + 1] = table[i][j] + 1 if x == y else max(table[i][j + 1], table[i + 1][j])
    return table[-1][-1]


def f1(same: int, found: int, wanted: int) -> float:
    return 200 * same / (found + wanted) if same else 0.0


@given(st.lists(st.tuples(*[st.text("ab cD.1", max_size=12)] * 2), min_size=1, max_size=5))
def test_as_it_is_defined(pairs: list[tuple[str, str]]):
    scores = rouge([text for text, _ in pairs], [reference for _, reference in pairs])
    both = [(words(text), words(reference)) for text, reference in pairs]
    subsequence = [f1(longest(a, b), len(a), len(b)) for a, b in both]
    single = [f1((Counter(a) & Counter(b)).total(), len(a), len(b)) for a, b in both]
    assert scores.rouge_l == pytest.approx(sum(subsequence) / len(pairs))
    assert scores.rouge_1 == pytest.approx(sum(single) / len(pairs))


def test_beside_bleu_where_asked_for():
    found = [Translation("Return the name.", 0.0, False)]
    assert compare(found, ["Return the name."]).rouge is None
    scores = compare(found, ["Return the name."], rouge=True).rouge
    assert scores is not None
    assert scores.rouge_l == scores.rouge_2 == 100
    assert scores.signature.startswith("rouge-score ")


def test_the_missing_package_is_named(monkeypatch: pytest.MonkeyPatch):
    real = builtins.__import__

    def without(name: str, *rest: Any, **more: Any) -> Any:
        if name.startswith("rouge_score"):
            raise ImportError(name)
        return real(name, *rest, **more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(UsageError, match=r"regard\[documents\]"):
        rouge(["a"], ["a"])
