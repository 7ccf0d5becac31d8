"""The card tells what was given, hides paths, and stays Markdown whatever the names hold."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from rich.console import Console
from rich.markdown import Markdown

from regard.config import Config, merge
from regard.errors import printable
from regard.measure.score import Score
from regard.models.card import Facts, Measured, code, escape
from regard.tasks.translation.card import write

SIGNATURE = "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:2.5.1"
SCORES = {
    "bleu": Score(37.123, label="BLEU", digits=1, signature=SIGNATURE, count=1000),
    "chrf": Score(61.5, label="chrF", digits=1, count=1000),
}
SCORE = Measured("test.en", SCORES)
FACTS = Facts(
    merge(Config(), {"model.vocab_size": 8000, "text.source": "en", "text.target": "de"}),
    files=["/home/somebody/secret/train.en.gz", "train.de"],
    data=[
        "29,000 pairs of lines, of which 28,999 were trained on",
        "400,001 source and 410,003 target tokens",
    ],
    parameters=7_600_001,
    steps=12345,
    epochs=17.25,
    seconds=3540.0,
    machine="2 cores of an x86-64",
    version="0.1.0",
    scores=[SCORE],
)


def rendered(markdown: str) -> str:
    """What a person reads once the Markdown is drawn."""
    console = Console(width=400, color_system=None)
    with console.capture() as capture:
        console.print(Markdown(markdown))
    return capture.get()


def test_the_card_tells_everything() -> None:
    text = rendered(write(FACTS, "runs/mine"))
    for fact in (
        "A translator from English to German",
        "train.en.gz",
        "train.de",
        "29,000 pairs",
        "28,999",
        "400,001",
        "410,003",
        "7,600,001",
        "8,000",
        "12,345 steps (17.2 epochs) in 59 min",
        "2 cores of an x86-64",
        "Regard 0.1.0",
        "d_model 256",
        "37.12",
        "61.50",
        "1,000",
        SIGNATURE,
        "regard translate -m runs/mine",
    ):
        assert fact in text


def test_folders_of_the_training_files_stay_private() -> None:
    card = write(FACTS, "/home/somebody/secret/mine")
    assert "translate -m mine\n" in card
    assert "secret" not in card
    assert "somebody" not in card


def test_what_is_not_known_is_not_told() -> None:
    card = write(Facts(Config()), "DIR")
    assert "Trained on" not in card
    assert "Not measured yet" in card
    assert "0 steps" not in card


@pytest.mark.parametrize(
    ("seconds", "words"), [(42, "42 s"), (119, "119 s"), (900, "15 min"), (7500, "2 h 05 min")]
)
def test_time_is_told_as_people_do(seconds: float, words: str) -> None:
    assert f"in {words}\n" in write(Facts(Config(), steps=1, seconds=seconds), "DIR")


def shape(markdown: str) -> list[str]:
    """The kinds of things that the Markdown is read as, without their words."""
    tokens = MarkdownIt("commonmark").enable("table").parse(markdown)
    inner = [[child.type for child in token.children or [] if child.type != "text"] for token in tokens]
    return [f"{token.type} {kinds}" for token, kinds in zip(tokens, inner, strict=True)]


@pytest.mark.parametrize(
    "name",
    ["a|b.txt", "# x", "`x`", "**x**", "<b>", "[a](b)", "a\n\n# b", "x_y_z", "1. a", "&amp;", "- a", "a\\"],
)
def test_names_cannot_break_the_card(name: str) -> None:
    def card(word: str) -> str:
        score = Measured(word, {"bleu": Score(1.0, label="BLEU", signature=word, count=3)})
        return write(Facts(Config(), files=["a", word], machine=word, scores=[score]), word)

    assert shape(card(name)) == shape(card("x"))
    assert rendered(card(name)).count(" ".join(name.split())) >= 4  # title, file, machine, score


@given(st.text(st.characters(exclude_categories=())))
def test_escaped_text_is_read_as_it_was(text: str) -> None:
    """But for what a terminal would act on, or no file could hold: that is spelled out."""
    escaped = escape(text)
    assert escaped.isprintable()
    assert re.sub(r"\\(.)", r"\1", escaped) == printable(" ".join(text.split()))
    assert not re.search(r"(?<!\\)(\\\\)*[`*_\[\]<>|#&~]", escaped)  # a sign after no or two backslashes


@given(st.text("`ab \n", max_size=9))
def test_code_is_fenced_by_more_backticks_than_it_holds(text: str) -> None:
    fenced = code(text or "a")
    (paragraph,) = [each for each in MarkdownIt("commonmark").parse(f"x {fenced}") if each.type == "inline"]
    if text.strip():
        assert [each.content for each in paragraph.children or [] if each.type == "code_inline"] == [
            " ".join(text.split())
        ]
