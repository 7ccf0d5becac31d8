"""The forced pass is the search: its weights and probabilities are those that `regard.look` taped."""

import pytest
import torch

from regard.look import look
from regard.tasks.translation import tracing
from regard.tasks.translation.align import token_spans, words
from regard.tasks.translation.tracing import trace, weights_of
from regard.tasks.translation.translator import load_readable


@pytest.fixture(scope="module")
def translator(model):
    return load_readable(model)


def test_it_is_what_the_search_saw(translator):
    sources = ["a b c", "h", "d e f g"]  # of several lengths, so that there is padding
    found = list(translator.stream(sources))
    read = translator.tokenizer.encode_batch(sources)
    seen_by_us = weights_of(translator, read, [each.ids for each in found])
    for source, each, (probabilities, weights) in zip(sources, found, seen_by_us, strict=True):
        seen = look(translator, source)
        assert each.text == seen.translation
        count = len(each.ids)
        torch.testing.assert_close(
            torch.tensor(probabilities), torch.tensor(seen.confidence[:count]), atol=1e-4, rtol=1e-3
        )
        assert weights.sum(-1).tolist() == pytest.approx([1] * count, abs=1e-4)
        layers = [seen.map("cross", layer).weights.mean(0)[:count, :-1] for layer in range(3)]
        close = [torch.allclose(weights, layer / layer.sum(-1, keepdim=True), atol=1e-4) for layer in layers]
        assert any(close)


def test_rows_in_several_passes_are_those_of_one(translator, monkeypatch):
    sources = ["a b c", "h", "d e f g", "a ä 狗 b", "c"]
    found = [(each.ids, each.text) for each in translator.stream(sources)]
    whole = trace(translator, sources, found)
    monkeypatch.setattr(tracing, "NUMBERS", 600)  # a row or two at a time, and few logits
    for one, other in zip(whole, trace(translator, sources, found), strict=True):
        assert (one.text, list(one.home)) == (other.text, list(other.home))
        assert list(one.sure) == pytest.approx(list(other.sure), rel=1e-3)


def test_every_word_is_told(translator):
    sources = ["a ä 狗 b", "c"]
    found = [(each.ids, each.text) for each in translator.stream(sources)]
    for source, traced in zip(sources, trace(translator, sources, found), strict=True):
        assert len(traced.sure) == len(traced.home) == len(words(traced.text))
        assert all(0 <= number < len(words(source)) for number in traced.home)
        assert all(0 <= number < len(words(traced.text)) for number in traced.seen)


def test_spans_of_a_text_are_its_own(translator):
    tokenizer = translator.tokenizer
    for text in ("a b c", "x", "a 狗狗 b", "ä-ö", "12 3"):
        spans = token_spans(tokenizer, tokenizer.encode(text), text)
        assert {n for a, b in spans for n in range(a, b)} == {n for n, c in enumerate(text) if c != " "}
        assert list(spans) == sorted(spans)


def test_a_model_without_cross_attention_is_read_in_order():
    assert tracing._sharpest([], (4, 2)).tolist() == [[1, 0], [1, 0], [0, 1], [0, 1]]
