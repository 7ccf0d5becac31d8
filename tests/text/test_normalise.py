"""Normalisation against the rules it states, one by one and all together."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.text.normalise import in_order, normalise

# Characters that a rule is about, mixed in often.
texts = st.text(st.one_of(st.sampled_from(" \t\r\ufeff\u2581_\u00a0\u202f\u0301e\n"), st.characters()))


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("", ""),
        (" \t\r ", ""),
        ("a \t  b", "a b"),
        ("\ufeff a\r", "a"),
        ("e\u0301", "\u00e9"),
        ("\u2581x", "_x"),
        ("a\u00a0b\u202fc\u2028d\u0085e", "a\u00a0b\u202fc\u2028d\u0085e"),
        ("\u00a0a\u3000", "\u00a0a\u3000"),
        ("a\rb", "a\rb"),
        ("\ud83d", "\ufffd"),
    ],
)
def test_each_rule(line: str, expected: str) -> None:
    assert normalise(line) == expected


@given(texts)
def test_twice_is_once(line: str) -> None:
    assert normalise(normalise(line)) == normalise(line)


@given(texts)
def test_equals_the_rules_one_after_the_other(line: str) -> None:
    slow = "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in line).replace("\u2581", "_")
    slow = unicodedata.normalize("NFC", slow).replace("\t", " ")
    while "  " in slow:
        slow = slow.replace("  ", " ")
    while slow and slow[0] in " \r\ufeff":
        slow = slow[1:]
    while slow and slow[-1] in " \r\ufeff":
        slow = slow[:-1]
    assert normalise(line) == slow


MARKS = (
    "\u0301\u0316\u0344\u0f71\u0f73\u0f75\u0f81\u3099\u05b0a가\u1161"  # of many classes, and made of others
)


@given(st.text(st.sampled_from(MARKS), min_size=20, max_size=70))
def test_marks_put_in_order_first_give_the_same_text(line: str) -> None:
    many = "a" + line.replace("a", "").replace("가", "") * 2 + line
    assert unicodedata.normalize("NFC", in_order(many)) == unicodedata.normalize("NFC", many)
    assert normalise(many * 20) == unicodedata.normalize("NFC", many * 20)
