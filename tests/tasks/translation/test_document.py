"""A text in parts: what lies between sentences is kept to the letter; words know where they came from."""

from hypothesis import given
from hypothesis import strategies as st

from regard.tasks.translation.align import Tokens, Traced, words
from regard.tasks.translation.document import read_document
from regard.tasks.translation.reading import Reading
from regard.text.glossary import Glossary

TEXTS = st.text(st.sampled_from("aB3. !?\n\r\t\u00a0\u2028x-—😀。\u0301"), max_size=50)


def read(text, **options):
    given_ = {"markup": False, "glossary": Glossary({}), "count": lambda t: len(t.split()), "limit": 99}
    return read_document(text, **(given_ | options))


def test_line_breaks_and_blanks_are_kept():
    text = "  One.  Two.\r\n\r\n\tThree\n---\n"
    document = read(text)
    assert [sentence.text for sentence in document.sentences] == ["One.", "Two.", "Three"]
    readings = [Reading(f"<{n}>", 0.0) for n in range(3)]
    assert "".join(document.pieces(readings)) == "  <0>  <1>\r\n\r\n\t<2>\n---\n"


@given(TEXTS)
def test_a_text_translated_by_itself_keeps_its_blanks(text):
    document = read(text)
    found = "".join(document.pieces([Reading(sentence.raw, 0.0) for sentence in document.sentences]))
    assert found == text


def test_long_sentences_are_cut_to_the_limit():
    document = read("one two three four five six seven", limit=3)
    assert all(len(sentence.text.split()) <= 3 for sentence in document.sentences)
    assert " ".join(sentence.text for sentence in document.sentences) == "one two three four five six seven"


def trace(source, target):
    """Word for word."""
    sources, spans = words(source), words(target)
    rows = tuple(tuple(float(s == t) for s in range(len(sources))) for t in range(len(spans)))
    return Traced.of(Tokens(target, spans), Tokens(source, sources), [0.5] * len(spans), rows)


def test_words_tell_their_places_in_both_texts():
    text = "Hi.\n a   dog,  a cat"
    document = read(text, glossary=Glossary({"cat": "Kater"}))
    first, second = document.sentences
    readings = [
        Reading("Na.", 0.0, trace(first.text, "Na.")),
        Reading("ein Hund, eine Katze", 0.0, trace(second.text, "ein Hund, eine Katze")),
    ]
    answer = "".join(document.pieces(readings))
    assert answer == "Na.\n ein Hund, eine Kater"
    found = document.words(readings)
    for word in found:
        assert answer[word["start"] : word["end"]] == word["text"]
        for origin in word["from"]:
            assert text[origin["start"] : origin["end"]] == origin["text"]
    by_text = {word["text"]: word for word in found}
    assert by_text["Hund"]["from"][0]["text"] == "dog"
    assert by_text["Hund"]["confidence"] == 0.5
    assert by_text["Kater"]["confidence"] is None
    assert by_text["Kater"]["from"][0]["text"] == "cat"


def test_a_text_that_is_all_glossary_needs_no_model():
    document = read("Regard", glossary=Glossary({"Regard": "Regard"}))
    assert document.sentences == []
    assert "".join(document.pieces([])) == "Regard"
