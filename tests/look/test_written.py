"""A language model under the eye: weights and probabilities against a plain pass, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from writers import drawn

from regard.attention.record import record
from regard.attention.switch import heads_off
from regard.data.inputs import Tokens
from regard.decoding.sampling import Sampling
from regard.errors import DataError, UsageError
from regard.look.context import compare_word
from regard.look.look import Look, look
from regard.tasks.language.writer import Wish, Writer

TEXT = "the cat — sat"


@pytest.fixture(scope="module")
def writer() -> Writer:
    _, model, tokenizer = drawn("subwords")
    return Writer(model, tokenizer)


@pytest.fixture(scope="module")
def seen(writer: Writer) -> Look:
    return look(writer, TEXT, tokens=7)


def test_it_writes_what_generate_writes(writer: Writer, seen: Look) -> None:
    (wanted,) = writer.generate([TEXT], Wish(tokens=7))
    assert seen.answer == wanted.text
    ids = writer.tokenizer.encode(TEXT)
    assert seen.given == len(ids) - 1
    assert len(seen.read.tokens) == len(seen.target.tokens) == len(ids) + 7 - 1
    assert seen.score == pytest.approx(sum(wanted.logp), rel=1e-4)
    sure = torch.tensor(seen.confidence[seen.given :]).log()
    torch.testing.assert_close(sure, torch.tensor(wanted.logp), atol=1e-4, rtol=1e-4)


@torch.inference_mode()
def test_the_weights_are_those_of_the_steps(writer: Writer, seen: Look) -> None:
    ids = writer.tokenizer.encode(TEXT)
    state = writer.model.start(Tokens(torch.tensor([ids[:-1]])))
    with record() as tape:
        writer.model.step(torch.tensor(ids[-1:]), state)
    for each in seen.maps:
        row = each.weights[:, len(ids) - 1, : len(ids)]
        torch.testing.assert_close(row, tape[each.name][0][0, :, 0], atol=1e-5, rtol=1e-4)
        assert not each.weights.triu(1).any()
    assert [each.name for each in seen.maps] == ["decoder.0.self", "decoder.1.self"]


def test_runners_up_are_the_likeliest_others(writer: Writer, seen: Look) -> None:
    """Of the first piece, from a plain pass."""
    ids = writer.tokenizer.encode(TEXT)
    with torch.inference_mode():
        p = writer.model.project(writer.model(Tokens(torch.tensor([ids]))))[0, 0].softmax(-1)
    order = [number for number in p.argsort(descending=True).tolist() if number != ids[1]][:5]
    assert [piece for piece, _ in seen.guesses[0].runners] == writer.tokenizer.shown(order)
    assert [sure for _, sure in seen.guesses[0].runners] == pytest.approx(p[order].tolist(), rel=1e-4)


def test_heads_that_are_off_are_off_in_both(writer: Writer) -> None:
    off = {"decoder.0.self": [0, 1, 2]}
    found = look(writer, TEXT, tokens=5, off=off)
    with heads_off(off):
        (wanted,) = writer.generate([TEXT], Wish(tokens=5))
    assert found.answer == wanted.text
    assert found.to_dict()["off"] == off


def test_what_is_drawn_is_what_generate_draws(writer: Writer) -> None:
    sampling = Sampling(1.5, seed=3)
    (wanted,) = writer.generate([TEXT], Wish(tokens=9, sampling=sampling))
    assert look(writer, TEXT, tokens=9, sampling=sampling).answer == wanted.text


def test_the_document_keeps_to_the_schema(seen: Look, schema: dict[str, Any]) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    tree = json.loads(seen.to_json())
    jsonschema.validate(tree, schema)
    assert tree["sides"].keys() == {"read", "target"}
    assert tree["alignment"] is None
    assert seen.bertviz().keys() == {"attention", "tokens"}


def test_a_text_can_be_read_alone(writer: Writer) -> None:
    found = look(writer, TEXT, tokens=0)
    assert (found.answer, found.truncated) == ("", False)
    assert len(found.guesses) == len(writer.tokenizer.encode(TEXT)) - 1


def test_what_is_refused(writer: Writer, seen: Look, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no cross-attention"):
        seen.save(tmp_path / "a.pharaoh")
    with pytest.raises(UsageError, match="beam means nothing to a language model"):
        look(writer, TEXT, beam=3)
    with pytest.raises(UsageError, match="do not fit into the model's 61 places"):
        look(writer, TEXT, tokens=99)
    with pytest.raises(UsageError, match="nothing to look at"):
        look(writer, "", tokens=0)
    with pytest.raises(DataError, match=r"weights in this model and at most 100"):
        look(writer, TEXT, most=100)


def test_words_in_context_are_what_the_decoder_makes_of_them(writer: Writer) -> None:
    found = compare_word(writer, "sat", ["the cat sat", "the dog sat on"])
    ids = writer.tokenizer.encode("the dog sat on")
    with torch.inference_mode():
        hidden = writer.model(Tokens(torch.tensor([ids])))[0]
    word = found.occurrences[1].word
    torch.testing.assert_close(found.vectors[1], hidden[word.first : word.end].mean(0))
    with pytest.raises(UsageError, match="tokens and this model takes 61"):
        compare_word(writer, "sat", ["sat, " * 99])
