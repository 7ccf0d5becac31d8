"""The forced pass is the search: its weights and probabilities are those that `regard.look` taped."""

import pytest
import torch

from regard.decoding.translator import load
from regard.look import look
from regard.serving.align import token_spans, words
from regard.serving.tracing import trace


@pytest.fixture(scope="module")
def translator(model):
    return load(model)


def test_it_is_what_the_search_saw(translator):
    sources = ["a b c", "h", "d e f g"]  # of several lengths, so that there is padding
    found = list(translator.stream(sources))
    traces = trace(translator, sources, [(each.ids, each.text) for each in found])
    for source, each, traced in zip(sources, found, traces, strict=True):
        seen = look(translator, source)
        assert traced.text == each.text == seen.translation
        count = len(each.ids)
        torch.testing.assert_close(
            torch.tensor(traced.probabilities), torch.tensor(seen.confidence[:count]), atol=1e-4, rtol=1e-3
        )
        taped = seen.map("cross", seen.alignment().layer).weights.mean(0)[:count, :-1]
        taped = taped / taped.sum(-1, keepdim=True)
        layers = [seen.map("cross", layer).weights.mean(0)[:count, :-1] for layer in range(3)]
        close = [
            torch.allclose(torch.tensor(traced.weights), layer / layer.sum(-1, keepdim=True), atol=1e-4)
            for layer in [taped, *layers]
        ]
        assert any(close)


def test_rows_sum_to_one_and_spans_spell_the_text(translator):
    sources = ["a ä 狗 b", "c"]
    found = list(translator.stream(sources))
    for source, traced in zip(
        sources, trace(translator, sources, [(f.ids, f.text) for f in found]), strict=True
    ):
        for row in traced.weights:
            assert sum(row) == pytest.approx(1, abs=1e-4)
        covered = {place for start, end in traced.spans for place in range(start, end)}
        assert covered == {n for n, character in enumerate(traced.text) if character != " "}
        total = sum(traced.share((0, len(traced.text)), place) for place in words(source))
        assert total == pytest.approx(1, abs=1e-3)


def test_spans_of_a_text_are_its_own(translator):
    tokenizer = translator.tokenizer
    for text in ("a b c", "x", "a 狗狗 b", "ä-ö", "12 3"):
        spans = token_spans(tokenizer, tokenizer.encode(text), text)
        assert {n for a, b in spans for n in range(a, b)} == {n for n, c in enumerate(text) if c != " "}
        assert list(spans) == sorted(spans)


def test_a_model_without_cross_attention_is_read_in_order(translator, monkeypatch):
    from regard.serving import tracing

    rows = tracing._sharpest([], (4, 2))
    assert rows == ((1, 0), (1, 0), (0, 1), (0, 1))
