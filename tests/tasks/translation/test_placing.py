"""Tags and terms find their words again: by hand-made alignments, and as a law for any."""

import html
from html.parser import HTMLParser

from hypothesis import given, settings
from hypothesis import strategies as st

from regard.tasks.translation.align import Tokens, Traced, words
from regard.tasks.translation.document import read_document
from regard.tasks.translation.reading import Reading
from regard.text.glossary import Glossary


def aligned(source: str, target: str, pairs: dict[int, int], sure: float = 0.9) -> Traced:
    """A trace in which written word i looked at source word pairs[i]."""
    sources, spans = words(source), words(target)
    rows = []
    for number in range(len(spans)):
        rest = (1 - sure) / max(1, len(sources) - 1)
        rows.append(tuple(sure if s == pairs.get(number, number) else rest for s in range(len(sources))))
    return Traced.of(Tokens(target, spans), Tokens(source, sources), [0.5] * len(spans), rows)


def translated(text: str, target: str, pairs: dict[int, int] | None = None, **glossary: str) -> str:
    """What becomes of HTML when its one sentence is translated so."""
    document = read_document(
        text, markup=True, glossary=Glossary(glossary), count=lambda t: len(t.split()), limit=99
    )
    (sentence,) = document.sentences
    trace = aligned(sentence.text, target, pairs or {})
    return "".join(document.pieces([Reading(target, 0.0, trace)]))


def test_a_tag_follows_its_word():
    assert translated("a <b>red</b> house", "une maison rouge", {1: 2, 2: 1}) == "une maison <b>rouge</b>"


def test_tags_around_several_words_and_inside_each_other():
    found = translated(
        "the <b>very <i>old</i> man</b> sleeps",
        "es schläft der sehr alte Mann",
        {0: 4, 1: 4, 2: 0, 3: 1, 4: 2, 5: 3},
    )
    assert found == "es schläft der <b>sehr <i>alte</i> Mann</b>"


def test_a_tag_around_everything_stays_outside():
    assert translated("<p><b>a dog</b></p>", "ein Hund") == "<p><b>ein Hund</b></p>"


def test_punctuation_and_entities():
    assert translated(
        "<i>R&amp;D</i> is fun!", "F & E macht Spaß!", {0: 0, 1: 1, 2: 2, 3: 3, 4: 4, 5: 5}
    ) == ("<i>F &amp; E</i> macht Spaß!")


def test_what_is_not_to_be_translated_is_kept_to_the_letter():
    text = 'call <span translate="no">foo&lt;T&gt;  <b>now</b></span> twice'
    assert translated(text, "rufe Unsinn zweimal", {0: 0, 1: 1, 2: 6}) == (
        'rufe <span translate="no">foo&lt;T&gt;  <b>now</b></span> zweimal'
    )


def test_a_glossary_replaces_what_was_written_for_the_term():
    assert translated("the cat sleeps", "die Katze schläft", cat="Kater") == "die Kater schläft"
    assert translated("<b>cat</b> food", "Katzen futter", cat="A&B") == "<b>A&amp;B</b> futter"


def test_more_tags_than_words():
    found = translated("<i>a</i> <b>b</b> <u>c</u> d", "alles", {0: 3})
    assert sorted(found.replace("alles", "").split("><")) is not None
    for tag in ("i", "b", "u"):
        assert found.count(f"<{tag}>") == found.count(f"</{tag}>") == 1


def test_a_tag_from_one_sentence_into_the_next_keeps_them_together():
    document = read_document(
        "One <b>two. Three</b> four.",
        markup=True,
        glossary=Glossary({}),
        count=lambda t: len(t.split()),
        limit=99,
    )
    assert [sentence.text for sentence in document.sentences] == ["One two. Three four."]
    document = read_document(
        "<b>One. Two.</b> Three.",
        markup=True,
        glossary=Glossary({}),
        count=lambda t: len(t.split()),
        limit=99,
    )
    assert [sentence.text for sentence in document.sentences] == ["One.", "Two.", "Three."]


class Tags(HTMLParser):
    """The tags of a text, and whether they are nested as they should be."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.seen: list[str] = []
        self.words: list[str] = []
        self.sound = True
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.seen.append(tag)
        if tag != "img":
            self.open.append(tag)

    def handle_endtag(self, tag):
        self.sound &= bool(self.open) and self.open.pop() == tag

    def handle_data(self, data):
        self.words += data.split()


@st.composite
def trees(draw, depth=3):
    """HTML of words, tags inside tags, and pictures."""
    parts = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(["word", "word", "tag", "img"] if depth else ["word"]))
        if kind == "word":
            parts.append(draw(st.sampled_from(["one", "two.", "A&amp;B", "Three", "4"])))
        elif kind == "img":
            parts.append("<img>")
        else:
            tag = draw(st.sampled_from(["b", "i", "a"]))
            parts.append(f"<{tag}>{draw(trees(depth=depth - 1))}</{tag}>")
    return draw(st.sampled_from([" ", ""])).join(parts)


@settings(max_examples=200)
@given(trees(), st.data())
def test_every_tag_comes_once_and_well_nested_whatever_the_alignment(text, data):
    document = read_document(
        text, markup=True, glossary=Glossary({}), count=lambda t: len(t.split()), limit=99
    )
    readings = []
    for sentence in document.sentences:
        target = " ".join(data.draw(st.lists(st.sampled_from(["x", "y", "z<"]), min_size=1, max_size=5)))
        size = len(words(sentence.text))
        pairs = {n: data.draw(st.integers(0, size - 1)) for n in range(len(words(target)))}
        readings.append(Reading(target, 0.0, aligned(sentence.text, target, pairs)))
    found = Tags("".join(document.pieces(readings)))
    assert found.sound
    assert not found.open
    assert sorted(found.seen) == sorted(Tags(text).seen)
    said = " ".join(reading.text for reading in readings)
    assert "".join(found.words).count("z<") == html.unescape(said).count("z<")
