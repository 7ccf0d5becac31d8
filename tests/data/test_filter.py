"""Which pairs are left out, and that no line is too long to be judged."""

from collections.abc import Callable
from typing import Any

import pytest

from regard.config import DataConfig
from regard.data import filter as filter_module
from regard.data.corpus import Pair
from regard.data.filter import EMPTY, OVER_LONG, RATIO, judge, verdict

RULES = DataConfig(max_length=11, max_ratio=3.0)


@pytest.mark.parametrize(
    ("src", "tgt", "reason"),
    [
        (0, 0, EMPTY),
        (5, 0, EMPTY),
        (0, 99, EMPTY),
        (10, 10, None),  # and the end mark: exactly max_length
        (11, 10, OVER_LONG),
        (10, 11, OVER_LONG),
        (3, 9, None),  # exactly max_ratio
        (3, 10, RATIO),
        (7, 2, RATIO),
        (1, 1, None),
    ],
)
def test_verdict(src: int, tgt: int, reason: str | None) -> None:
    assert verdict(src, tgt, RULES) == reason


def reasons(encoder: Any, *texts: tuple[str, str]) -> list[str | None]:
    pairs = [Pair(src, tgt, line) for line, (src, tgt) in enumerate(texts, 1)]
    return [judged.reason for chunk in judge(pairs, encoder, RULES) for judged in chunk]


def test_judge_gives_ids_and_reasons_in_order(encoder: Any) -> None:
    pairs = [Pair("ab", "c", 1), Pair("", "x", 2), Pair("a" * 11, "b" * 11, 3)]
    [chunk] = judge(pairs, encoder, RULES)
    assert [judged.pair for judged in chunk] == pairs
    assert (chunk[0].src, chunk[0].tgt) == ([4 + 97, 4 + 98], [4 + 99])
    assert [judged.reason for judged in chunk] == [None, EMPTY, OVER_LONG]


@pytest.mark.parametrize("blank", ["", " ", "\t ", "\u3000", "\xa0", "\u2028"])
def test_blank_sides_are_empty(encoder: Any, blank: str) -> None:
    assert reasons(encoder, (blank, "a"), ("a", blank), (blank, blank)) == [EMPTY] * 3


def test_a_megabyte_is_over_long_and_never_tokenised(encoder: Any) -> None:
    assert reasons(encoder, ("x" * (1 << 20), "y"), ("x", "y" * (1 << 20))) == [OVER_LONG] * 2
    assert encoder.longest < 1000


def test_a_megabyte_of_spaces_is_not_over_long(new_encoder: Callable[[], Any]) -> None:
    assert reasons(new_encoder(), ("a" + " " * (1 << 20), "b")) == [None]


def test_chunks_are_bounded(encoder: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filter_module, "_CHUNK_PAIRS", 3)
    monkeypatch.setattr(filter_module, "_CHUNK_CHARACTERS", 10)
    pairs = [Pair("a", "b", line) for line in range(1, 8)] + [Pair("x" * 20, "y", 8), Pair("a", "b", 9)]
    chunks = list(judge(pairs, encoder, RULES))
    assert [len(chunk) for chunk in chunks] == [3, 3, 2, 1]
    assert [judged.pair for chunk in chunks for judged in chunk] == pairs
