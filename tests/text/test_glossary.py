"""Terms in a text: whole words, longest first, with their case."""

import pytest

from regard.text.elements import Element
from regard.text.glossary import Glossary


@pytest.mark.parametrize(
    ("text", "glossary", "expected"),
    [
        ("a cat, catalogue", {"cat": "X"}, [("cat", "X")]),
        ("Cat and cat", {"cat": "kater"}, [("Cat", "Kater"), ("cat", "kater")]),
        ("a CAT", {"cat": "X"}, []),
        ("New York City", {"New York": "NY", "New York City": "NYC"}, [("New York City", "NYC")]),
        ("C++ and C", {"C++": "C++", "C": "c"}, [("C++", "C++"), ("C", "c")]),
        ("a.b (x)", {".": "!", "(x)": "y"}, [(".", "!"), ("(x)", "y")]),
        ("猫がいる", {"猫": "cat"}, []),
        ("", {"a": "b"}, []),
        ("a", {}, []),
    ],
)
def test_terms_of(text, glossary, expected):
    assert [(text[e.start : e.end], e.fixed) for e in Glossary(glossary).terms(text)] == expected


def test_terms_that_tags_cut_or_that_are_fixed_are_left_alone():
    text = "New York and Rome"
    glossary = {"New York": "NY", "Rome": "Rom"}
    assert [e.fixed for e in Glossary(glossary).terms(text, [Element(4, 8, "<b>", "</b>")])] == ["Rom"]
    assert [e.fixed for e in Glossary(glossary).terms(text, [Element(13, 17, "<b>", "</b>", "Rome")])] == [
        "NY"
    ]
    assert [e.fixed for e in Glossary(glossary).terms(text, [Element(0, 8, "<b>", "</b>")])] == ["NY", "Rom"]
