"""Documents as one line: what comes back, and what a corpus of them never holds."""

from hypothesis import given
from hypothesis import strategies as st

from regard.text.documents import BREAK, fold, unfold
from regard.text.normalise import normalise

_WORDS = st.text(st.sampled_from("ab→←·x_(:é"), min_size=1, max_size=5)
_LINES = st.tuples(st.integers(0, 13), st.lists(_WORDS, max_size=3))


def written(lines: list[tuple[int, list[str]]]) -> str:
    """Indented lines; a blank one has no spaces."""
    return "\n".join(" " * depth + " ".join(words) if words else "" for depth, words in lines)


@given(st.lists(_LINES, max_size=9))
def test_what_was_folded_comes_back(lines: list[tuple[int, list[str]]]):
    text = written(lines).strip("\n")
    margin = len(text) - len(text.lstrip(" "))
    # Written at the margin of its first line, a text that never goes left of it returns as it was.
    inside = "\n".join(
        line[margin:] if line[:margin].isspace() or not margin else line.lstrip() for line in text.split("\n")
    )
    assert unfold(fold(inside)) == inside


@given(st.text())
def test_any_text_becomes_one_stable_line(text: str):
    line = fold(text)
    assert len(line.splitlines()) <= 1
    assert "\t" not in line
    assert fold(unfold(line)) == line
    assert normalise(line) == normalise(unfold(fold(unfold(line))) if BREAK not in line else line)


def test_a_break_of_the_text_is_no_break():
    assert fold("a ¶ b\n  c") == "a | b ¶·· c"
    assert unfold("a ¶·· c ¶← →b") == "a\n  c\n→b"


def test_tabs_and_blank_ends():
    assert fold("\n\n\tif x:\n\t\ty  =  1   \n\n\n") == "if x: ¶→ y = 1"
    assert fold(" \n ") == ""
