"""Running text: nothing is lost, cutting it into chunks changes nothing, and GPT-2's own tokenizer agrees."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regard.errors import ModelError, UsageError
from regard.text import running
from regard.text.running import ALPHABET, UNITS, RunningText, written
from regard.text.tokenizer import Tokenizer

PLAY = "First Citizen:\nBefore we proceed, hear me.\n\n\tAll:  Speak, speak — naïve “café” 年年年 \r\n" * 7
texts = st.text(st.characters(exclude_categories=("Cs",)))
SUBWORDS = RunningText.learn([PLAY])
near = st.text(st.sampled_from("First spek\n\n \t\r.,:—é年\u2028\x00“"))


@pytest.fixture(scope="module", params=UNITS)
def tokenizer(request: pytest.FixtureRequest) -> RunningText:
    return RunningText.learn([PLAY], request.param)


@given(st.one_of(texts, near))
def test_decode_of_encode_is_the_text_itself(tokenizer: RunningText, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_saved_and_read_it_is_the_same(tokenizer: RunningText) -> None:
    again = Tokenizer.from_json(tokenizer.to_json())
    assert isinstance(again, RunningText)
    assert again.units == tokenizer.units
    assert again.encode(PLAY) == tokenizer.encode(PLAY)
    assert again.to_json() == tokenizer.to_json()


def test_what_its_tokens_are() -> None:
    sizes = {units: RunningText.learn([PLAY], units).vocab_size for units in UNITS}
    assert sizes["bytes"] == 260
    assert sizes["characters"] == 260 + len({letter for letter in PLAY if letter > "\x7f"})
    assert sizes["subwords"] > 260
    assert len(RunningText.learn([PLAY], "characters").encode("“年é")) == 3
    assert len(RunningText.learn([PLAY], "bytes").encode("“年é")) == 8


def test_the_same_text_gives_the_same_tokenizer() -> None:
    assert RunningText.learn([PLAY]).to_json() == RunningText.learn([PLAY]).to_json()


@given(st.lists(near, min_size=1))
def test_chunks_are_encoded_as_the_whole_is(parts: list[str]) -> None:
    text = "".join(parts)
    whole = SUBWORDS.encode(text)
    before, running.CHUNK = running.CHUNK, 5
    try:
        assert "".join(running._chunks(text)) == text
        assert SUBWORDS.encode(text) == whole
    finally:
        running.CHUNK = before


@given(st.one_of(texts, near))
def test_it_cuts_as_gpt2_does(text: str) -> None:
    transformers = pytest.importorskip("transformers")
    vocabulary = {piece: number for number, piece in enumerate(SUBWORDS.pieces)}
    theirs = transformers.GPT2Tokenizer(vocab=vocabulary, merges=SUBWORDS.merges, unk_token="<pad>")
    assert SUBWORDS.encode(text) == theirs(text, add_special_tokens=False)["input_ids"]


def test_bytes_are_written_as_the_library_writes_them() -> None:
    from tokenizers.pre_tokenizers import ByteLevel

    assert sorted(ALPHABET) == sorted(ByteLevel.alphabet())
    assert written(b" \n\xe5a") == "Ġ\u010aåa"


def test_a_document_ends_where_the_next_begins(tokenizer: RunningText) -> None:
    assert tokenizer.begin_id == tokenizer.end_id
    assert tokenizer.decode([tokenizer.end_id, *tokenizer.encode("a"), tokenizer.end_id]) == "a"


def test_half_a_surrogate_pair_is_no_text(tokenizer: RunningText) -> None:
    assert tokenizer.decode(tokenizer.encode("a\ud800b")) == "a?b"


def test_sizes() -> None:
    assert RunningText.learn([PLAY], vocab_size=263).vocab_size == 263
    assert RunningText.learn([PLAY], "characters", vocab_size=262).vocab_size == 262
    with pytest.raises(UsageError, match=r"text.vocab_size \(12\) must be at least 260"):
        RunningText.learn([PLAY], vocab_size=12)
    with pytest.raises(UsageError, match="must be one of subwords"):
        RunningText.learn([PLAY], "words")


def test_a_broken_file_is_refused() -> None:
    tree = json.loads(RunningText.learn([PLAY]).to_json())
    for change, words in (
        ({"pieces": 5}, "list of strings"),
        ({"pieces": tree["pieces"][:100], "merges": []}, "no token for the byte"),
        ({"specials": tree["specials"] | {"end": 10**6}}, "names the id 1000000"),
        ({"merges": [["a"]]}, "is broken"),
        ({"kind": "spoken"}, "does not know"),
    ):
        with pytest.raises(ModelError, match=words):
            Tokenizer.from_json(json.dumps(tree | change))
