"""Fields are checked and named when they are wrong; what is unknown is ignored."""

import pytest

from regard.serving.limits import Refusal
from regard.serving.schema import Attention, Translate, sound

GOOD = {"q": "a", "target": "de"}


def test_libretranslates_fields_and_unknown_ones():
    ask = Translate.of({"q": ["a", "b"], "source": "en", "target": "de", "apiKey": "k", "whatever": {"x": 1}})
    assert (ask.texts, ask.api_key, ask.format) == (["a", "b"], "k", "text")
    assert Translate.of(GOOD | {"source": None, "alternatives": None}).source == "auto"


def test_forms_say_everything_as_text():
    ask = Translate.of(GOOD | {"alternatives": "3", "words": "true", "glossary": '{"a": "b"}'})
    assert (ask.alternatives, ask.words, ask.glossary) == (3, True, {"a": "b"})
    assert Attention.of(GOOD | {"heads_off": '{"decoder.0.cross": [1]}'}).heads_off == {
        "decoder.0.cross": [1]
    }


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"q": None}, "missing q"),
        ({"target": None}, "missing target"),
        ({"q": 3}, "q"),
        ({"q": [["a"]]}, "q"),
        ({"q": ["a"] * 1001}, "q"),
        ({"source": "x" * 99}, "source"),
        ({"target": ""}, "target"),
        ({"format": "pdf"}, "format"),
        ({"alternatives": -1}, "alternatives"),
        ({"alternatives": 1e9}, "alternatives"),
        ({"alternatives": 1.5}, "alternatives"),
        ({"alternatives": "NaN"}, "alternatives"),
        ({"alternatives": float("inf")}, "alternatives"),
        ({"alternatives": 10**30}, "alternatives"),
        ({"words": "perhaps"}, "words"),
        ({"glossary": "{"}, "glossary"),
        ({"glossary": {"": "x"}}, "glossary"),
        ({"glossary": {str(n): "x" for n in range(300)}}, "glossary"),
        ({"glossary": {"a": 1}}, "glossary"),
    ],
)
def test_what_is_wrong_is_named_in_one_line(wrong, named):
    with pytest.raises(Refusal) as caught:
        Translate.of(GOOD | wrong)
    assert caught.value.status == 400
    assert named in caught.value.message
    assert "\n" not in caught.value.message


def test_heads_have_numbers():
    for heads in ({"a": [-1]}, {"a": [10**9]}, {"a": ["x"]}, {"a": 1}, {"a": [0.5]}):
        with pytest.raises(Refusal):
            Attention.of(GOOD | {"heads_off": heads})


def test_texts_are_made_text():
    assert sound(["\ufeffa\ud800b", "\U0001f600"]) == ["\ufeffa\ufffdb", "\U0001f600"]
