"""Heads off, one at a time: the ranking is what scoring with that head off gives."""

import pytest

from regard.attention.switch import heads_off
from regard.errors import ModelError
from regard.look.ablate import every_head, rank_heads
from regard.models.table import TableModel
from regard.tasks.translation.evaluate import score
from regard.tasks.translation.translator import Translator

SOURCES = ["the small dog", "a man", "the cats run"]


def test_every_head_is_ranked_by_what_is_lost_without_it(make):
    translator = make(3, beam=1, extra=12, least=2.0)
    references = translator.translate(SOURCES)
    heard = []
    ranking = rank_heads(translator, SOURCES, references, progress=lambda *each: heard.append(each))
    assert ranking.bleu == pytest.approx(100)
    assert ranking.sentences == 3
    assert {(each.name, each.head) for each in ranking.heads} == set(every_head(translator))
    assert len(ranking.heads) == 18
    lost = [each.lost for each in ranking.heads]
    assert lost == sorted(lost, reverse=True)
    assert lost[0] > 0
    first = ranking.heads[0]
    with heads_off({first.name: [first.head]}):
        assert score(translator, SOURCES, references, beam=1).bleu == pytest.approx(first.bleu)
    assert heard[-1] == (19, 19)


def test_a_model_without_heads_is_refused(tokenizer):
    import torch

    model = TableModel(torch.zeros(tokenizer.vocab_size, tokenizer.vocab_size))
    with pytest.raises(ModelError, match="no attention heads"):
        rank_heads(Translator(model, tokenizer), ["a"], ["b"])
