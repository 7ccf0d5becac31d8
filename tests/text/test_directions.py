"""Pairs of languages, their tokens, and what a model may be asked for."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.config import Config, TextConfig, merge
from regard.errors import UsageError
from regard.text.directions import Directions, pair_named, tag_of
from regard.text.tokenizer import Tokenizer

THREE = Directions.named(["en-de", "en-fr", "de-en"])


@pytest.mark.parametrize("name", ["en", "", "en-", "-de", "en-de ", "e-d", "en de", "en-en", "1-2", "a" * 99])
def test_what_is_no_pair_is_refused(name: str):
    with pytest.raises(UsageError, match=r"no pair of languages|to itself"):
        pair_named(name)


def test_a_pair_stands_once():
    with pytest.raises(UsageError, match="the pair en-de is there twice"):
        Directions.named(["en-de", "en-fr", "en-de"])


def test_what_was_never_trained_is_named():
    assert THREE.untrained == (("de", "fr"), ("fr", "de"), ("fr", "en"))
    assert THREE.zero_shot(("de", "fr"))
    assert not THREE.zero_shot(("en", "de"))
    assert not THREE.zero_shot(("", "fr"))  # nobody said what is translated


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("", ""), "writes de, fr, en; say which"),
        (("en", "cs"), "does not know cs; it knows en, de, fr"),
        (("cs", "de"), "does not know cs"),
        (("de", "de"), "in de already"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(asked: tuple[str, str], said: str):
    with pytest.raises(UsageError, match=said):
        THREE.chosen(*asked)


def test_a_language_that_is_only_read_is_never_written():
    with pytest.raises(UsageError, match="never learned to write en; it writes de, fr"):
        Directions.named(["en-de", "en-fr"]).chosen("de", "en")
    assert Directions.named(["en-de", "fr-de"]).chosen("FR") == ("fr", "de")  # one target needs no word


def test_a_folder_keeps_its_pairs():
    config = merge(Config(), {"text.pairs": "en-de pt_BR-en"})
    assert Directions.of(config.text) == Directions((("en", "de"), ("pt_BR", "en")))
    assert Directions.of(TextConfig()) is None
    with pytest.raises(UsageError, match=r"text\.pairs \(en\) must be a list of pairs"):
        merge(Config(), {"text.pairs": "en-de en"})


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    tags = [tag_of("de"), tag_of("fr"), "<back>"]
    return Tokenizer.train(["the cat >>de<< <back> 2", "the dog <<fr>>"] * 9, 0, tags)


@settings(max_examples=50)
@given(text=st.text() | st.sampled_from([">>de<<", "a >>fr<< <back>", "▁>>de<<"]))
def test_no_text_is_spelled_with_a_tag(tokenizer: Tokenizer, text: str):
    tags = set(tokenizer.tags.values())
    assert len(tags) == 3
    assert not tags & set(tokenizer.encode(text))
    tagged = tokenizer.tagged(">>fr<<")
    plain = tokenizer.encode(text)
    wanted = [tokenizer.tags[">>fr<<"], *plain] if plain else []
    assert tagged.encode(text) == tagged.encode_batch([text])[0] == wanted
    assert tagged.encode_targets([text]) == [plain]
    assert tagged.decode(wanted) == tokenizer.decode(plain)


def test_tags_are_kept_and_never_written(tokenizer: Tokenizer):
    again = Tokenizer.from_json(tokenizer.to_json())
    assert again.tags == tokenizer.tags
    assert again.specials == tokenizer.specials
    assert set(again.tags.values()) < set(again.specials.never)
    assert again.specials.mask == Tokenizer.specials.mask
    exact = Tokenizer.train(["the cat"] * 9, 270, [tag_of("de")])
    assert exact.vocab_size == 270
    assert exact.pieces[-1] == ">>de<<"
