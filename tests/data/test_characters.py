"""Odd characters are found; those that languages need are left alone."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.data.characters import describe, odd_characters


@pytest.mark.parametrize(
    "odd",
    list("\x07\x1b\x7f\x85\ufffd\ue000\U000e0fff\u200b\u202e\u2066\ufeff\u00ad\u2028\ufdd0"),
)
def test_odd(odd: str) -> None:
    assert odd_characters(f"a {odd} b{odd}") == {odd}
    assert describe(odd).startswith(f"U+{ord(odd):04X} ")
    assert not describe(odd).endswith(" ")


@pytest.mark.parametrize(
    "fine", ["Grüße", "tab\there", "10\xa0000", "1\u202f000", "می\u200cخواهم", "👩\u200d🚀", "日本\u3000語"]
)
def test_ordinary(fine: str) -> None:
    assert odd_characters(fine) == set()


@given(st.characters())
def test_by_category(character: str) -> None:
    oddly = unicodedata.category(character) in {"Cc", "Cf", "Co", "Cn", "Zl", "Zp"} or character == "\ufffd"
    assert bool(odd_characters(character)) == (oddly and character not in "\t\u200c\u200d")
