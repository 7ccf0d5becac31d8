"""Heads off, one at a time: the ranking is what scoring with that head off gives."""

import itertools

import pytest
import torch

from regard.attention.switch import heads_off
from regard.errors import ModelError
from regard.look.ablate import every_head, rank_heads
from regard.measure.score import Score
from regard.models.table import TableModel
from regard.tasks.translation.evaluate import named_scores, score

SOURCES = ["the small dog", "a man", "the cats run"]


def test_every_head_is_ranked_by_what_is_lost_without_it(make):
    translator = make(3, beam=1, extra=12, least=2.0)
    references = translator.translate(SOURCES)
    heard = []
    measure = lambda: named_scores(score(translator, SOURCES, references, beam=1))  # noqa: E731
    ranking = rank_heads(translator.model, measure, progress=lambda *each: heard.append(each))
    assert (ranking.score, ranking.higher) == ("bleu", True)
    assert ranking.value == pytest.approx(100)
    assert {(each.name, each.head) for each in ranking.heads} == set(every_head(translator.model))
    assert len(ranking.heads) == 18
    lost = [each.lost for each in ranking.heads]
    assert lost == sorted(lost, reverse=True)
    assert lost[0] > 0
    first = ranking.heads[0]
    with heads_off({first.name: [first.head]}):
        assert score(translator, SOURCES, references, beam=1).bleu == pytest.approx(first.value)
    assert heard[-1] == (19, 19)


def test_what_is_lost_of_a_score_that_should_be_low_is_what_it_grows_by(make):
    model = make(3).model
    values = itertools.count(7.0)
    ranking = rank_heads(model, lambda: {"loss": Score(next(values), higher=False)})
    assert ranking.value == 7.0
    assert [each.lost for each in ranking.heads] == [float(lost) for lost in range(18, 0, -1)]


def test_a_model_without_heads_is_refused(tokenizer):
    model = TableModel(torch.zeros(tokenizer.vocab_size, tokenizer.vocab_size))
    with pytest.raises(ModelError, match="no attention heads"):
        rank_heads(model, dict)
