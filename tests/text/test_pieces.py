"""SentencePiece tokenizers as they are kept in a folder. tests/interop compares them with the package."""

import json
from typing import Any

import pytest

from regard.errors import ModelError
from regard.text.pieces import PieceModel, SentencePieces
from regard.text.tokenizer import Specials, Tokenizer

PIECES = [("▁", -3.0), ("a", -2.0), ("b", -2.5), ("▁a", -2.2), ("ab", -2.1), ("▁cat", -4.0)]
WORDS = ["</s>", "<unk>", *(piece for piece, _ in PIECES), ">>fra<<", "<0x41>", "<pad>"]
SPECIALS = Specials(pad=10, begin=10, end=0, never=(10,))


def make(**over: Any) -> SentencePieces:
    model = PieceModel("unigram", PIECES, {"\t": " ", "A": "a", "Ab": "b", "x": ""}, **over)
    return SentencePieces((model, model), (WORDS, WORDS), SPECIALS, (1, 1))


def test_the_longest_rewriting_wins_then_the_likeliest_cut() -> None:
    tokenizer = make()
    assert [WORDS[number] for number in tokenizer.encode("A\tAb  xab ")] == ["▁a", "▁", "b", "▁a", "b"]
    assert tokenizer.encode(" x ") == []


def test_neighbours_that_are_unknown_are_one_and_bytes_where_there_are_bytes() -> None:
    assert [WORDS[number] for number in make().encode("ßß a")] == ["▁", "<unk>", "▁a"]
    assert [WORDS[number] for number in make(byte_fallback=True).encode("ß")] == ["▁", "<unk>", "<unk>"]


def test_a_language_code_stays_whole_and_specials_stay_text() -> None:
    tokenizer = make()
    assert [WORDS[number] for number in tokenizer.encode(">>fra<< a")] == [">>fra<<", "▁a"]
    assert not {0, 10} & set(tokenizer.encode("</s> <pad>"))


def test_decoding_drops_specials_and_joins_bytes() -> None:
    tokenizer = make()
    assert (
        tokenizer.decode([10, WORDS.index("▁cat"), 1, WORDS.index("<0x41>"), WORDS.index("▁a"), 0])
        == "catA a"
    )


def test_half_a_surrogate_pair_is_no_reason_to_fail() -> None:
    assert make().encode("a \ud800")


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_saved_and_loaded_it_is_the_same(kind: str) -> None:
    models = PieceModel(kind, PIECES, {"A": "a"}), PieceModel(kind, PIECES[:4], {}, squeeze=False)
    tokenizer = SentencePieces(models, (WORDS, WORDS[:8]), Specials(10, 3, 0, (3,)), (1, 1))
    again = Tokenizer.from_json(tokenizer.to_json())
    assert isinstance(again, SentencePieces)
    assert again.to_json() == tokenizer.to_json()
    assert (again.vocab_size, again.target_vocab_size) == (11, 8)
    for text in ("A ab  cat", "  a", "ß"):
        assert again.encode(text) == tokenizer.encode(text)
        assert again.encode_targets([text]) == tokenizer.encode_targets([text])


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "other"},
        {"vocabulary": [1, 2]},
        {"vocabulary": WORDS[:3]},
        {"unknown": [99, 1]},
        {"specials": {}},
        {"source": {"kind": "char", "pieces": [], "rewrites": {}}},
        {"source": None},
    ],
    ids=lambda each: next(iter(each)),
)
def test_a_damaged_file_is_a_model_error(change: dict[str, Any]) -> None:
    tree = json.loads(make().to_json()) | change
    with pytest.raises(ModelError) as caught:
        Tokenizer.from_json(json.dumps(tree))
    assert "\n" not in str(caught.value)
