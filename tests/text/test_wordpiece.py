"""WordPiece against transformers' BertTokenizer, and files that are refused."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.errors import ModelError
from regard.text.tokenizer import Tokenizer
from regard.text.wordpiece import Cleaning, Marks, WordPieces

PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "##s", "sat", "na", "##ive", "naïve"]
PIECES += [*"abcdefghijklmnopqrstuvwxyz.,!?[]'", *(f"##{letter}" for letter in "abcdefghijklmnopqrstuvwxyz")]
PIECES = list(dict.fromkeys([*PIECES, "猫", "The", "C", "T", "S", "é", "##é"]))
MARKS = Marks(0, 1, 2, 3, 4)
TEXTS = st.text(st.sampled_from([*"the cats naïve.,!?[MASK]'\t\n猫犬 CTS\u0301\u200d\x00é"]), max_size=40)


@pytest.mark.parametrize("lowercase", [True, False])
def test_it_cuts_as_transformers_does(lowercase: bool) -> None:
    transformers = pytest.importorskip("transformers")
    ours = WordPieces(PIECES, MARKS, Cleaning(lowercase))
    ids = {piece: number for number, piece in enumerate(PIECES)}
    theirs = transformers.BertTokenizer(vocab=ids, do_lower_case=lowercase)

    @settings(max_examples=60)
    @given(TEXTS)
    def same(text: str) -> None:
        if not any(mark in text for mark in ("[MASK]", "[SEP]", "[CLS]", "[UNK]", "[PAD]")):
            assert ours.encode(text) == theirs(text, add_special_tokens=False)["input_ids"]
        assert ours.encode_batch([text, text]) == [ours.encode(text)] * 2

    same()


def test_marks_in_a_text_are_words_like_others() -> None:
    tokenizer = WordPieces(PIECES, MARKS)
    assert not {0, 2, 3, 4} & set(tokenizer.encode("the [MASK] [SEP] sat"))


def test_words_begin_where_no_piece_goes_on() -> None:
    tokenizer = WordPieces(PIECES, MARKS)
    ids = tokenizer.encode("the cats sat.")
    assert tokenizer.begins(ids) == [True, True, False, True, True]
    assert tokenizer.decode(ids) == "the cats sat ."


def test_it_comes_back_from_its_file() -> None:
    tokenizer = WordPieces(PIECES, MARKS, Cleaning(lowercase=False, strip_accents=True))
    again = Tokenizer.from_json(tokenizer.to_json())
    assert isinstance(again, WordPieces)
    assert again.to_json() == tokenizer.to_json()
    assert again.encode("The cats naïve") == tokenizer.encode("The cats naïve")
    assert (again.pad_id, again.begin_id, again.end_id, again.mask_id) == (0, 2, 3, 4)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"marks": {"pad": 0, "unknown": 1, "begin": 2, "end": 3, "mask": 999}}, "names the id 999"),
        ({"pieces": ["[PAD]", "[PAD]", "a", "b", "c"]}, "stands in it twice"),
        ({"pieces": [1, 2, 3, 4, 5]}, "must be text"),
        ({"cleaning": {"lowercase": "yes"}}, "cleaned or not"),
        ({"cleaning": {"colour": True}}, "broken"),
        ({"marks": {}}, "broken"),
    ],
)
def test_a_broken_file_is_refused(change: dict[str, object], said: str) -> None:
    tree = json.loads(WordPieces(PIECES, MARKS).to_json()) | change
    with pytest.raises(ModelError, match=said):
        Tokenizer.from_json(json.dumps(tree))
