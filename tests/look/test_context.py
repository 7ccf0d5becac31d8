"""One word in several sentences: its vectors are the encoder's, and the cosines are theirs."""

import json

import pytest
import torch

from regard.data.inputs import pad_sources
from regard.errors import DataError, ModelError, UsageError
from regard.look.context import compare_word
from regard.models.table import TableModel
from regard.tasks.translation.translator import Translator

SENTENCES = ["the river bank", "a Bank, a man and a bank", "run to the house, bank!"]


@pytest.fixture(scope="module")
def found(make):
    return compare_word(make(1), "bank", SENTENCES)


def test_every_place_of_the_word_is_found(found):
    assert [each.sentence for each in found.occurrences] == [0, 1, 1, 2]
    assert [each.word.text for each in found.occurrences] == ["bank", "Bank", "bank", "bank"]


def test_vectors_are_the_encoders_mean_over_pieces(found, make):
    translator = make(1)
    ids = [*translator.tokenizer.encode(SENTENCES[0]), translator.tokenizer.end_id]
    with torch.inference_mode():
        memory = translator.model.encode(pad_sources([ids]))[0].float()
    word = found.occurrences[0].word
    torch.testing.assert_close(found.vectors[0], memory[word.first : word.end].mean(0))


def test_cosines_against_torch(found):
    cosine = found.cosine
    assert torch.allclose(cosine.diagonal(), torch.ones(4, dtype=torch.float64))
    wanted = torch.cosine_similarity(found.vectors[0].double(), found.vectors[3].double(), dim=0)
    assert float(cosine[0, 3]) == pytest.approx(float(wanted))
    assert float(cosine[0, 3]) < 0.999  # the context tells


@pytest.mark.parametrize("ending", ["html", "json", "svg", "png"])
def test_it_is_written_by_its_ending(found, tmp_path, ending):
    path = tmp_path / f"word.{ending}"
    found.save(path)
    assert path.stat().st_size > 500


def test_the_document_says_where_the_word_stands(found):
    tree = json.loads(found.to_json())
    assert [each["words"][each["place"]].lower() for each in tree["occurrences"]] == ["bank"] * 4
    assert len(tree["cosine"]) == 4
    assert len(tree["vectors"][0]) == 12


def test_what_cannot_be_compared_is_refused(make, tokenizer, tmp_path):
    with pytest.raises(DataError, match="sentence 2 does not hold the word 'bank'"):
        compare_word(make(1), "bank", ["a bank", "a house"])
    with pytest.raises(UsageError, match="give the sentences"):
        compare_word(make(1), "bank", [])
    table = TableModel(torch.zeros(tokenizer.vocab_size, tokenizer.vocab_size))
    with pytest.raises(ModelError, match="has no encoder"):
        compare_word(Translator(table, tokenizer), "bank", ["a bank"])
    with pytest.raises(DataError, match="tokens and this model takes 5"):
        compare_word(make(1, positions__kind="learned", positions__max_length=5), "run", ["run " * 9])
    with pytest.raises(UsageError, match=r"ends in \.txt"):
        compare_word(make(1), "bank", ["a bank"]).save(tmp_path / "a.txt")
