"""A file of each format comes back with its structure, only words changed; what is none is refused."""

import re

import pytest
from formats import MAKERS, loud, members
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.errors import DataError, UsageError
from regard.files.file import FORMATS, format_of, open_data, text_of

WORDS = st.text(st.sampled_from("abc dé.!? 'x<&>%{}*_#-|日"), min_size=1, max_size=24)
TEXTS = st.lists(
    WORDS.map(str.strip).filter(lambda text: any(map(str.isalpha, text))), min_size=1, max_size=4
)


def test_every_format_has_a_maker():
    assert set(MAKERS) | {"markdown", "htm", "xhtml", "xlf"} == set(FORMATS)


def read(form, data):
    return open_data(data, form, f"a.{form}")


@pytest.mark.parametrize("form", MAKERS)
def test_it_comes_back_with_its_structure(form):
    data = MAKERS[form]("One small dog.", "It runs & barks, twice.", "A third < line")
    opened = read(form, data)
    made = opened.written([loud(segment) for segment in opened.segments])
    assert made != data
    again = read(form, made)
    if form not in ("po", "xliff"):  # what is translated there is no segment any more
        assert len(again.segments) == len(opened.segments)
        assert [re.findall(r"<[^<>]*>", each) for each in again.segments] == [
            re.findall(r"<[^<>]*>", each) for each in opened.segments
        ]
    if form in ("docx", "pptx", "odt", "epub"):
        assert list(members(made)) == list(members(data))
    else:
        assert b"ONE SMALL DOG." in made


def bare(segments):
    """All that is said; cues share sentences, and may share them otherwise."""
    return "".join("".join(segments).split())


@pytest.mark.parametrize("form", MAKERS)
@settings(max_examples=12)
@given(texts=TEXTS)
def test_any_texts_come_back(form, texts):
    """With its own segments a file is what it was, as far as it is read; with others it can be read again."""
    opened = read(form, MAKERS[form](*texts))
    same = read(form, opened.written(opened.segments))
    if form not in ("po", "xliff"):
        assert bare(same.segments) == bare(read(form, MAKERS[form](*texts)).segments)
    opened = read(form, MAKERS[form](*texts))
    read(form, opened.written([loud(segment) for segment in opened.segments]))


@pytest.mark.parametrize("form", sorted(set(FORMATS) - {"txt", "md", "markdown", "html", "htm", "xhtml"}))
@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"<a><b></a>", b"hello", b"\x00\x01\x02" * 9])
def test_what_is_none_is_refused(form, data):
    if form == "po" and data in (b"",):
        return
    with pytest.raises(DataError, match=rf"^a\.{form}") as refused:
        read(form, data)
    assert "\n" not in str(refused.value)


HEAD = """# Of the cat.
msgid ""
msgstr ""
"Project-Id-Version: cat 1.0\\n"
"Language: de\\n"
"Content-Type: text/plain; charset=UTF-8\\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\\n"
"X-Generator: Jürgen\\n"

"""


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_head_and_the_flags_of_a_catalogue_stay(end):
    body = '#: a.c:3\n#, c-format\nmsgid "%d dogs"\nmsgstr ""\n\n#~ msgid "old"\n#~ msgstr "alt"\n'
    opened = read("po", (HEAD + body).replace("\n", end).encode())
    made = opened.written(opened.segments).decode()
    assert made.startswith(HEAD + "#: a.c:3\n#, c-format, fuzzy\n")
    assert made.count("alt") == made.count("Project-Id-Version") == 1
    assert read("po", made.encode()).segments == []


def test_a_catalogue_without_a_head_gets_one_that_says_its_encoding():
    made = (opened := read("po", b'msgid "a dog"\nmsgstr ""\n')).written(["ein Bär"] * len(opened.segments))
    assert b"charset=utf-8" in made
    assert "ein Bär".encode() in made


def test_names():
    assert format_of("a/b.DOCX") == "docx"
    assert format_of("train.en") is None
    with pytest.raises(UsageError, match="format"):
        open_data(b"", "pdf", "a.pdf")
    with pytest.raises(DataError, match="save it as UTF-8"):
        read("txt", b"\xe9")


def test_utf_16_stays():
    data = "\ufeffone\r\ntwo".encode("utf-16-le")
    opened = read("txt", data)
    assert text_of(opened.written([loud(each) for each in opened.segments])) == "\ufeffONE\r\nTWO"
