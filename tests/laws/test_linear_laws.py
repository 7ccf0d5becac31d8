"""Twice the text costs at most 2.3 times, whatever is in it: cutting, tags, terms, and putting it together.

Measured over five doublings in the seconds of this thread alone, the best of as many rounds as it takes, up
to a bound: other processes make a round slower, never faster, so only what is not linear runs out of rounds.
"""

import gc
import time

import pytest

from regard.serving.body import parse_json, parse_query
from regard.serving.guess import likeliest
from regard.tasks.translation.align import Tokens, Traced, words
from regard.tasks.translation.document import read_document
from regard.tasks.translation.reading import Reading
from regard.text.glossary import Glossary
from regard.text.markup import runs
from regard.text.normalise import normalise

DOUBLINGS, ONCE, ROUNDS = 5, 2.3, 25


def seconds(call, value):
    began = time.thread_time()
    call(value)
    return time.thread_time() - began


def check_linear(call, make, size):
    """`call(make(n))` from `size` to 32 times it: what is linear is far from the bound, a square farther."""
    small, large = make(size), make(size << DOUBLINGS)
    best = [float("inf")] * 2
    gc.disable()  # it comes when it likes
    try:
        for _ in range(ROUNDS):
            best = [min(best[0], seconds(call, small)), min(best[1], seconds(call, large))]
            if best[1] <= best[0] * ONCE**DOUBLINGS:
                return
    finally:
        gc.enable()
    raise AssertionError(f"{1 << DOUBLINGS} times the text costs {best[1] / best[0]:.1f} times as much")


def cut(text, *, markup=False, glossary=None, limit=63):
    """The document, every character a token."""
    return read_document(text, markup=markup, glossary=Glossary(glossary or {}), count=len, limit=limit)


def echo(document):
    """The answer if every sentence is its own translation."""
    readings = []
    for sentence in document.sentences:
        tokens = Tokens(sentence.text, words(sentence.text))
        rows = [[float(i == j) for j in range(len(tokens.spans))] for i in range(len(tokens.spans))]
        traced = Traced.of(tokens, tokens, [0.5] * len(tokens.spans), rows)
        readings.append(Reading(sentence.text, 0.0, traced))
    document.pieces(readings)
    if not document.markup:
        document.words(readings)


TEXTS = {
    "stops": ".",
    "stops and quotes": '."',
    "stops and letters": "A. ",
    "small letters": "a. ",
    "lines": "a\n",
    "a word": "x",
    "blanks": " ",
    "marks": "\u0301",
    "marks in the worst order": "\u0301\u0316",
    "words": "a b c d ",
    "wide stops": "猫。",
    "initials": "A.B. ",
    "openings": '. "(',
    "joiners": "a-b'c.d-",
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_text_is_cut(name):
    check_linear(cut, lambda size: "a " + TEXTS[name] * size, 1500)


@pytest.mark.parametrize("name", ["words", "lines", "a word", "small letters"])
def test_an_answer_is_put_together(name):
    check_linear(lambda text: echo(cut(text)), lambda size: TEXTS[name] * size, 150)


@pytest.mark.parametrize(
    "term", ["cat", "a", "(((x"], ids=["many hits", "hits of one letter", "nearly a hit"]
)
def test_terms_are_found_and_placed(term):
    text = {"cat": "cat dog ", "a": "a b ", "(((x": "((("}[term]
    check_linear(lambda text: echo(cut(text, glossary={term: "Kater"})), lambda size: text * size, 200)


HTML = {
    "tags that never end": "<b\t",
    "values that never end": '<a b="',
    "values in other quotes": "<a b='\"",
    "comments that never end": "<!--",
    "declarations": "<![CDATA[",
    "declarations that end": "<!x>",
    "instructions": "<?",
    "closing tags that never end": "</a ",
    "nothing that closes": "</",
    "scripts": "<script>",
    "scripts that end": "<script>a</script>",
    "fixed": "<code>",
    "ampersands": "&",
    "entities": "&amp",
    "numbers": "&#65;",
    "digits": "&#" + "9" * 30,
    "elements": "<b>a</b> ",
    "empty elements": "<b></b>",
    "pictures": "<img>",
    "opened": "<b>a ",
    "closed": "a</b> ",
    "other tags": "<i>a</b>",
    "paragraphs": "<p>a",
    "attributes": "<b class=a class='b' c>",
    "words to keep": "<b translate=no>a</b> ",
}


@pytest.mark.parametrize("name", HTML)
def test_html_is_read(name):
    check_linear(lambda text: cut(text, markup=True), lambda size: "a " + HTML[name] * size, 500)


@pytest.mark.parametrize("name", ["elements", "empty elements", "pictures", "opened", "closed", "paragraphs"])
def test_tags_are_placed(name):
    check_linear(lambda text: echo(cut(text, markup=True)), lambda size: "a " + HTML[name] * size + "b", 100)


@pytest.mark.parametrize("inner", ["", "a "])
def test_tags_inside_each_other(inner):
    def nested(size):
        return "x " + f"<b>{inner}" * size + "a b" + "</b>" * size + " y"

    check_linear(lambda text: echo(cut(text, markup=True)), nested, 150)


def test_opened_and_never_closed_while_others_are():
    check_linear(runs, lambda size: "<i>" * size + "</b>" * size, 1000)


def test_attributes_of_one_tag():
    check_linear(runs, lambda size: "<b " + "class='x' translate  = a " * size + ">", 1000)


def test_places_of_tags_in_a_text_that_is_normalised():
    text = "e\u0301<b>  a</b>"
    check_linear(lambda size: cut(text * size, markup=True, limit=10**6), lambda size: size, 100)


@pytest.mark.parametrize("line", ["\u0301\u0316", "\u0f73\u0301", "a  ", "가\u11a8", "\ud800"])
def test_lines_are_normalised(line):
    check_linear(normalise, lambda size: "a" + line * size, 4000)


def test_a_language_is_guessed():
    check_linear(
        lambda text: likeliest(text, ["en", "ru"], lambda _, t: len(t)), lambda size: "я" * size, 200
    )


@pytest.mark.parametrize("inner", ["{},", "[[[]]],", '"a",'])
def test_json_is_read(inner):
    check_linear(parse_json, lambda size: f'{{"q":[{inner * size}0]}}'.encode(), 100)


@pytest.mark.parametrize("inner", ["q=%41", "%41", "+"])
def test_forms_are_read(inner):
    check_linear(parse_query, lambda size: ("q=" + inner * size).encode(), 3000)
