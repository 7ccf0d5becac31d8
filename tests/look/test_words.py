"""Pieces to words: every piece in exactly one word, and joined maps that still sum to 1."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.look.words import Side, join_keys, join_queries
from regard.text.pieces import PieceModel, SentencePieces
from regard.text.running import RunningText
from regard.text.tokenizer import Specials, Tokenizer

TOKENIZER = Tokenizer.train(["the small dog runs, the cats run to the house!"] * 9, vocab_size=0)


def side(text: str) -> Side:
    return Side.of([*TOKENIZER.encode(text), TOKENIZER.end_id], TOKENIZER)


def test_words_and_punctuation():
    words = [word.text for word in side("the dog, 12 zzz!!").words]
    assert words == ["the", "dog", ",", "12", "zzz", "!!", "</s>"]
    assert [word.text for word in side("the dog, 12 zzz!!").spaced] == ["the", "dog,", "12", "zzz!!"]


def test_running_text_is_shown_as_it_is_written():
    tokenizer = RunningText.learn(["to be, or not — to be\n"] * 9, "subwords")
    found = Side.of(tokenizer.encode("not be,\n\tto — 狗"), tokenizer)
    assert [word.text for word in found.words] == ["not", "be", ",", "↵", "⇥", "to", "—", "狗"]
    assert "".join(found.tokens).startswith("not▁be,↵⇥to▁")


def test_bytes_are_spelled_together():
    found = side("the 狗狗 dog")
    assert [word.text for word in found.words] == ["the", "狗狗", "dog", "</s>"]
    assert found.words[1].end - found.words[1].first >= 6


def test_a_text_that_looks_like_a_special_is_text():
    found = side("</s> <s>")
    assert found.special == (False,) * (len(found.tokens) - 1) + (True,)


@given(st.text(max_size=40))
def test_every_piece_belongs_to_one_word(text):
    found = side(text)
    places = [i for word in found.words for i in range(word.first, word.end)]
    assert places == list(range(len(found.tokens)))
    spaced = "".join(word.text for word in found.spaced)
    assert spaced.replace(" ", "") == TOKENIZER.decode(TOKENIZER.encode(text)).replace(" ", "")


@given(st.text(min_size=1, max_size=30), st.integers(0, 2**31))
def test_joined_rows_still_sum_to_one(text, seed):
    words, pieces = side(text).words, len(side(text).tokens)
    generator = torch.Generator().manual_seed(seed)
    weights = torch.rand(3, 5, pieces, generator=generator).softmax(-1)
    torch.testing.assert_close(join_keys(weights, words).sum(-1), torch.ones(3, 5))
    square = torch.rand(3, pieces, 7, generator=generator).softmax(-1)
    torch.testing.assert_close(join_queries(square, words).sum(-1), torch.ones(3, len(words)))


def test_joining_against_a_loop():
    words = side("the dog, runs").words
    pieces = words[-1].end
    weights = torch.rand(pieces, pieces)
    joined = join_queries(join_keys(weights, words), words)
    for i, query in enumerate(words):
        for j, key in enumerate(words):
            cells = [
                float(weights[t, s]) for t in range(query.first, query.end) for s in range(key.first, key.end)
            ]
            assert abs(float(joined[i, j]) - sum(cells) / (query.end - query.first)) < 1e-5


def test_an_imported_model_has_pieces_of_its_own_for_the_target():
    model = PieceModel("unigram", [("▁cat", -1.0), ("s", -1.0)], {})
    source, target = ["</s>", "<unk>", "▁cat", "s", "<pad>"], ["</s>", "<unk>", "▁Ka", "tzen", "<pad>"]
    imported = SentencePieces((model, model), (source, target), Specials(4, 4, 0, (4,)), (1, 1))
    assert [word.text for word in Side.of([2, 3, 0], imported).words] == ["cats", "</s>"]
    written = Side.of([4, 2, 3, 0], imported, target=True)
    assert [word.text for word in written.words] == ["<pad>", "Katzen", "</s>"]
    assert written.special == (True, False, False, True)
