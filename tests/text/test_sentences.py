"""Where sentences end, what is kept between them, and how long ones are cut."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.text.sentences import fitting, sentences

TEXTS = st.text(
    st.sampled_from("aB3é. !?…\n\r\t\u2028 ,;:\"'”)(。！「」。x\u0301\U0001f600").filter(bool), max_size=60
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two.", ["One.", "Two."]),
        ("Is it? Yes! Good…  Fine.", ["Is it?", "Yes!", "Good…", "Fine."]),
        ("He said “Stop.” She did.", ["He said “Stop.”", "She did."]),
        ("Mr. Smith met Dr. Jones.", ["Mr. Smith met Dr. Jones."]),
        ("J. R. R. Tolkien wrote. We read.", ["J. R. R. Tolkien wrote.", "We read."]),
        ("The U.S. Army is there.", ["The U.S. Army is there."]),
        ("It costs 3.50 here. 12.5 km.", ["It costs 3.50 here.", "12.5 km."]),
        ("Am 3. Mai kam z.B. Otto. Dann ging er.", ["Am 3. Mai kam z.B. Otto.", "Dann ging er."]),
        ("In 2016. Then.", ["In 2016.", "Then."]),
        ("So did I. You too.", ["So did I.", "You too."]),
        ("See example.com. Or v1.2.3 now.", ["See example.com.", "Or v1.2.3 now."]),
        ("wait... what? yahoo! is big", ["wait... what? yahoo! is big"]),
        ("今日は晴れ。明日は雨！本当？", ["今日は晴れ。", "明日は雨！", "本当？"]),
        ("नमस्ते। आप कैसे हैं?", ["नमस्ते।", "आप कैसे हैं?"]),
        ("a\nb\r\n\r\n  c  \u2028d", ["a", "b", "c", "d"]),
        ("", []),
        (" \n\t ", []),
    ],
)
def test_sentences_of(text, expected):
    assert [text[start:end] for start, end in sentences(text)] == expected


@given(TEXTS)
def test_sentences_hold_everything_but_blanks(text):
    spans = sentences(text)
    edges = [edge for span in spans for edge in span]
    assert edges == sorted(edges)
    between = [0, *edges, len(text)]
    assert not "".join(text[a:b] for a, b in zip(between[::2], between[1::2], strict=True)).strip()
    for start, end in spans:
        assert text[start:end] == text[start:end].strip() != ""
        assert "\n" not in text[start:end]


@given(TEXTS, st.integers(1, 7))
def test_pieces_fit_and_lose_nothing(text, limit):
    def count(piece):
        return len(piece)

    pieces = fitting(text, (0, len(text)), count, limit)
    assert all(0 < end - start <= limit for start, end in pieces)
    kept = "".join(text[start:end] for start, end in pieces)
    assert "".join(kept.split()) == "".join(text.split())


def test_a_long_sentence_is_cut_at_punctuation_then_at_a_space_then_anywhere():
    def cut(text, limit):
        return [text[a:b] for a, b in fitting(text, (0, len(text)), len, limit)]

    assert cut("one two; three, four", 12) == ["one two;", "three, four"]
    assert cut("one two, three four", 12) == ["one two,", "three four"]
    assert cut("one two six ten", 8) == ["one two", "six ten"]
    assert cut("aaaaaaaa", 4) == ["aaaa", "aaaa"]


def test_a_huge_word_is_cut_before_it_is_counted():
    seen = []
    fitting("x" * 100_000, (0, 100_000), lambda piece: seen.append(len(piece)) or len(piece), 10)
    assert max(seen) <= 80
