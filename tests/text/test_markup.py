"""HTML in, HTML out: what is kept to the letter, whatever is written."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.tasks.translation.align import Tokens, Traced, words
from regard.tasks.translation.document import read_document
from regard.tasks.translation.reading import Reading
from regard.text.glossary import Glossary
from regard.text.markup import Run, runs


def echoed(text: str) -> str:
    """The text when every sentence is translated by itself."""
    document = read_document(text, markup=True, glossary=Glossary({}), count=lambda t: 1, limit=99)
    texts = [sentence.text for sentence in document.sentences]
    return "".join(document.pieces([Reading(each, 0.0, by_itself(each)) for each in texts]))


def by_itself(text: str) -> Traced:
    """The trace of a text that is its own translation."""
    spans = tuple(words(text))
    rows = tuple(tuple(float(s == t) for s in range(len(spans))) for t in range(len(spans)))
    return Traced.of(Tokens(text, spans), Tokens(text, spans), [1.0] * len(spans), rows)


@pytest.mark.parametrize(
    "text",
    [
        "<p>One.</p>\n\n<p>Two.</p>",
        "<ul><li>a</li><li>b</li></ul>",
        "<script>if (a < b) { x = '<p>' }</script><p>t</p>",
        "<style>p > a {}</style>",
        "<!-- a comment --><p>t</p>",
        "<!DOCTYPE html><html><body>t</body></html>",
        "<br/>a<br>b<hr>",
        "<code> x  y </code>",
        "<pre>\n  a\n</pre>",
        "<svg><path d='x'/></svg> a",
        "<div translate='no'>leave <b>me</b></div> alone",
        "a <span class='x notranslate y'>b</span>",
        "5 &lt; 6 &amp; 7 &gt; 2",
        "<p title='a &quot; b'>t</p>",
        "<b>unclosed",
        "closed</b> before",
        "<b><p>crossed</b></p>",
        "a < b and c > d",
        "<",
        "&",
        "&unknown; &#x41; &#65",
        "<a href=javascript:x>y</a>",
        "<img src=x onerror=y>",
    ],
)
def test_only_text_is_touched(text):
    found = echoed(text)
    assert "".join(echoed(found).split()) == "".join(found.split()), "it stays as it is the second time"
    for tag in ("<p>", "</p>", "<script>", "<br", "<code>", "notranslate", "<svg>", "<pre>", "href"):
        assert found.count(tag) == text.count(tag)


def test_scripts_and_fixed_elements_are_no_sentences():
    text = "<script>Run this.</script><p>Read <code>x = 1.</code> now.</p><pre>Not this.</pre>"
    found = read_document(text, markup=True, glossary=Glossary({}), count=lambda t: 1, limit=99)
    assert [sentence.text for sentence in found.sentences] == ["Read x = 1. now."]
    assert echoed("<script>Run  this.</script>") == "<script>Run  this.</script>"


@given(st.text(st.sampled_from("ab <>/&;!-=\"'pbri\n#x1"), max_size=40))
def test_any_text_can_be_read(text):
    parts = runs(text)
    for part in parts:
        if isinstance(part, Run):
            for element in part.elements:
                assert 0 <= element.start <= element.end <= len(part.text)
    echoed(text)


def test_blanks_between_tags_are_kept():
    assert echoed("<p>  One.  <b> Two. </b>\n</p>") == "<p>  One.  <b> Two. </b>\n</p>"
