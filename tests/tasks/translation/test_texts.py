"""Texts of any length: as many out as in, each sentence by itself, and what lies between them kept."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.errors import DataError, UsageError
from regard.tasks.translation.load import load_translator
from regard.tasks.translation.texts import Handling, cut
from regard.tasks.translation.translator import load_readable

TEXTS = st.lists(st.text(st.sampled_from("abB c. !?\n\t\u2028。<i>&"), max_size=30), max_size=5)


@pytest.fixture(scope="module")
def translator(model):
    return load_translator(model)


def test_a_text_is_translated_sentence_by_sentence(translator):
    one, two = translator.translate(["a b.", "c d e!"])
    assert translator.translate("  a b.\n\n\tc d e!\n---\n") == f"  {one}\n\n\t{two}\n---\n"


@settings(max_examples=25)
@given(TEXTS, st.booleans())
def test_there_are_as_many_as_came(translator, texts, html):
    found = list(translator.texts(iter(texts), html=html, beam=1))
    assert len(found) == len(texts)
    for text, each in zip(texts, found, strict=True):
        assert bool(text.strip()) == bool(each.text.strip())


def test_a_single_sentence_is_what_the_line_gives(translator):
    lines = ["a b c", "h", "d d d d"]
    by_line = list(translator.stream(lines, n_best=3, beam=4))
    texts = list(translator.texts(lines, n_best=3, beam=4))
    for one, other in zip(by_line, texts, strict=True):
        assert (one.text, one.truncated, one.tokens) == (other.text, other.truncated, other.tokens)
        assert one.score == pytest.approx(other.score)
        assert other.n_best[0].text == other.text
        scores = [each.score for each in other.n_best]
        assert scores == sorted(scores, reverse=True)
        assert {each.text for each in other.n_best} == {each.text for each in one.n_best}


def test_a_text_that_is_too_long_for_the_model_is_cut(translator):
    line = " ".join("abcdefgh"[n % 8] for n in range(3 * translator.limit))
    with pytest.raises(DataError, match="split the line"):
        translator.translate([line + " a" * translator.decode.max_source])
    sentences = cut(translator, line, Handling.of()).sentences
    assert len(sentences) > 3
    assert translator.translate(line) == " ".join(translator.translate([each.text for each in sentences]))


def test_tags_terms_and_words(translator):
    (found,) = translator.texts(["<p>a <b>b c</b>\nd</p><code>e</code>"], html=True)
    assert found.text.startswith("<p>")
    assert found.text.count("<b>") == found.text.count("</b>") == 1
    assert "<code>e</code>" in found.text
    (found,) = translator.texts(["a b c. A b"], glossary={"b": "Bär"}, words=True)
    assert found.text.count("Bär") == 2
    assert all(found.text[word["start"] : word["end"]] == word["text"] for word in found.words)


def test_a_break_in_html_is_a_blank(translator):
    (one,) = translator.texts(["<p>a b c</p>"], html=True)
    (two,) = translator.texts(["<p>a\nb  \r\nc</p>\n<p></p>"], html=True)
    assert two.text == f"{one.text}\n<p></p>"


def test_what_came_before_a_fault_is_answered(translator):
    def lines():
        yield "a. B."
        raise DataError("no more")

    found = translator.texts(lines())
    assert next(found).text
    with pytest.raises(DataError, match="no more"):
        next(found)


def test_refusals(translator, model):
    with pytest.raises(UsageError, match="not of HTML"):
        translator.texts(["a"], html=True, words=True)
    with pytest.raises(UsageError, match="one string"):
        translator.texts("a b")
    with pytest.raises(UsageError, match="n_best"):
        translator.texts(["a"], n_best=9, beam=2)
    readable = load_readable(model)
    readable.parses = (model,)
    with pytest.raises(UsageError, match="belong to lines"):
        readable.texts(["a"])


def test_a_translator_shows_itself(translator, model):
    text = repr(translator)
    assert text.startswith("<Translator: Transformer, ")
    assert "\n" not in text
    assert "parameters" in text
    assert f"beam {translator.decode.beam}" in text
    assert "readable" in repr(load_readable(model))
    rows = translator._repr_markdown_().splitlines()
    assert rows[:2] == ["| Translator | |", "|---|---|"]
    assert all(row.startswith("| ") and row.endswith(" |") for row in rows[2:])
    assert "ids" not in repr(next(translator.stream(["a"])))
