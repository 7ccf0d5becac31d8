"""The tape of a search, followed back: equal to a forced pass over the winner, whatever the search did."""

from typing import Any

import pytest
import torch
from torch import Tensor

from regard.attention import record
from regard.attention.record import attentions
from regard.data.inputs import pad_sources
from regard.look.maps import maps
from regard.look.trace import Trace, Watched, follow
from regard.tasks.translation.translator import Translator

TEXTS = ["the small dog", "a man and a house, what is the river bank?", "run", "the cats!"]
KINDS: dict[str, dict[str, Any]] = {
    "transformer": {},
    "pre-norm, learned": {"model__norm": "pre", "positions__kind": "learned"},
    "one key head": {"model__kv_heads": 1},
    "dot": {"attention__score": "dot"},
    "relative": {"positions__kind": "relative"},
    "rotary": {"positions__kind": "rotary"},
    "alibi": {"positions__kind": "alibi"},
    "additive": {"attention__score": "additive"},
    "local": {"attention__kind": "local", "attention__window": 2},
    "bigbird": {"attention__kind": "bigbird", "attention__block": 2},
    "linformer": {"attention__kind": "linformer", "attention__rank": 3},
    "rnn-attention": {"model__kind": "rnn-attention"},
    "lstmn": {"model__kind": "lstmn"},
    "conv": {"model__kind": "conv"},
}


def search(translator: Translator, texts: list[str], *, vectors: bool = False) -> tuple[Watched, list[Trace]]:
    """Translate all texts as one batch under watch; the trace of each."""
    tokenizer = translator.tokenizer
    watched = Watched(translator.model, end=tokenizer.end_id, vectors=vectors)
    found = list(Translator(watched, tokenizer, translator.decode).stream(texts))
    order = sorted(range(len(texts)), key=lambda i: len(tokenizer.encode(texts[i])))
    traces = {}
    for place, number in enumerate(order):
        each = found[number]
        written = [*each.ids, *([] if each.truncated else [tokenizer.end_id])]
        traces[number] = follow(watched, written, begin=tokenizer.begin_id, sentence=place)
    return watched, [traces[number] for number in range(len(texts))]


def forced(translator: Translator, trace: Trace) -> dict[str, Tensor]:
    """The slow twin: the whole output read at once, in a batch of its own."""
    read = [translator.tokenizer.begin_id, *trace.written[:-1]]
    with torch.inference_mode(), record() as tape:
        translator.model(pad_sources([trace.source]), torch.tensor([read]))
    return {name: torch.cat(list(tape[name]), 2)[0] for name in tape.names()}


@pytest.mark.parametrize("beam", [1, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_the_winners_weights_are_those_of_a_forced_pass(kind, beam, make):
    translator = make(3, beam=beam, **KINDS[kind])
    watched, traces = search(translator, TEXTS)
    if beam > 1 and kind == "transformer":
        steps = [step.parent for step in watched.steps[1:]]
        assert any(not torch.equal(parent, torch.arange(len(parent))) for parent in steps)
    for text, trace in zip(TEXTS, traces, strict=True):
        ids = translator.tokenizer.encode(text)
        assert trace.source == [*ids, translator.tokenizer.end_id]
        wanted = forced(translator, trace)
        found = {each.name: each.weights for each in maps(trace)}
        assert found.keys() == wanted.keys()
        source = len(trace.source)
        for name, weights in wanted.items():
            part = found[name][:, :source] if name.startswith("encoder") else found[name]
            torch.testing.assert_close(part[..., : weights.shape[-1]], weights, atol=1e-5, rtol=0)


def test_neighbours_and_beam_rows_change_nothing(make):
    translator = make(5)
    _, together = search(translator, TEXTS)
    for text, trace in zip(TEXTS, together, strict=True):
        _, (alone,) = search(translator, [text])
        assert alone.written == trace.written
        torch.testing.assert_close(torch.tensor(alone.logp), torch.tensor(trace.logp), atol=1e-4, rtol=0)


@pytest.mark.parametrize("beam", [1, 4])
def test_the_probabilities_of_what_was_written_are_the_models(make, beam):
    translator = make(2, beam=beam)
    _, traces = search(translator, TEXTS)
    for trace in traces:
        read = torch.tensor([[translator.tokenizer.begin_id, *trace.written[:-1]]])
        with torch.inference_mode():
            hidden = translator.model(pad_sources([trace.source]), read)
            logp = translator.model.project(hidden)[0].float().log_softmax(-1)
        wanted = logp.gather(1, torch.tensor(trace.written)[:, None])[:, 0]
        torch.testing.assert_close(torch.tensor(trace.logp), wanted, atol=1e-4, rtol=0)
        assert all(0 <= each <= 1 for each in trace.confidence)


def test_both_whole_and_cut_outputs_were_among_them(make):
    ends = set()
    for seed in range(6):
        translator = make(seed)
        _, traces = search(translator, TEXTS)
        ends |= {trace.written[-1] == translator.tokenizer.end_id for trace in traces}
    assert ends == {True, False}


def test_vectors_of_all_steps_give_the_weights_again(make):
    _, (trace,) = search(make(4), TEXTS[1:2], vectors=True)
    for each in maps(trace):
        assert each.vectors is not None
        assert each.score == "scaled-dot"
        hidden = each.weights == 0
        made = each.vectors.scores.masked_fill(hidden, float("-inf")).softmax(-1)
        torch.testing.assert_close(made, each.weights, atol=1e-5, rtol=0)
        products = each.vectors.q @ each.vectors.k.mT / 4**0.5
        torch.testing.assert_close(products[~hidden], each.vectors.scores[~hidden], atol=1e-4, rtol=0)
        assert each.vectors.v.shape == each.vectors.k.shape


def test_only_what_is_wanted_is_kept(make):
    translator = make(4)
    watched = Watched(translator.model, end=translator.tokenizer.end_id, keep=lambda name: "cross" in name)
    list(Translator(watched, translator.tokenizer, translator.decode).stream(TEXTS[:1]))
    assert watched.started == {}
    assert all(set(step.heard) == {"decoder.0.cross", "decoder.1.cross"} for step in watched.steps)


def test_attentions_are_the_modules_that_tape(make):
    for kind in KINDS.values():
        translator = make(0, **kind)
        _, (trace,) = search(translator, TEXTS[:1])
        assert {each.site.name for each in attentions(translator.model)} == {
            each.name for each in maps(trace)
        }
