import math
import time
from typing import Any

import numpy as np
import pytest
import torch
from sacrebleu import corpus_bleu

from regard.config import DecodeConfig
from regard.data.inputs import pad_sources
from regard.decoding.greedy import greedy
from regard.decoding.search import Rules
from regard.models import build
from regard.tasks.translation.validation import PILOT, Validation
from regard.text.tokenizer import END
from regard.training.objective import Limit

CPU = torch.device("cpu")


def test_loss_and_bleu_against_one_sentence_at_a_time(toy: Any) -> None:
    config = toy.config()
    torch.manual_seed(2)
    model, rows = build(config).eval(), np.arange(5, 18)
    score = Validation(toy.store, rows, toy.tokenizer).measure(model, CPU, config.train, last=True)
    total, tokens, outputs, references = 0.0, 0, [], []
    for row in rows:
        src, tgt = (ids.tolist() for ids in toy.store.pair(row))
        source = pad_sources([[*src, END]])
        with torch.no_grad():
            logits = model.project(model(source, torch.tensor([[1, *tgt]])))[0]
            total += float(
                torch.nn.functional.cross_entropy(logits, torch.tensor([*tgt, END]), reduction="sum")
            )
            (found,) = greedy(model, source, Rules.of(DecodeConfig(), [len(src) + 1]))
        tokens += len(tgt) + 1
        outputs.append(toy.tokenizer.decode(found.ids))
        references.append(toy.tokenizer.decode(tgt))
    assert math.isclose(score.scores["loss"].value, total / tokens, rel_tol=1e-4)
    assert math.isclose(score.scores["bleu"].value, corpus_bleu(outputs, [references]).score, rel_tol=1e-6)
    assert score.scores["bleu"].count == len(rows)
    assert "tok:13a" in score.scores["bleu"].signature


def test_it_leaves_no_trace(toy: Any) -> None:
    model = build(toy.config()).train()
    before, random = [weight.clone() for weight in model.parameters()], torch.get_rng_state()
    Validation(toy.store, np.arange(5), toy.tokenizer).measure(model, CPU, toy.config().train)
    assert model.training
    assert torch.equal(torch.get_rng_state(), random)
    assert all(map(torch.equal, before, model.parameters()))
    assert all(weight.grad is None for weight in model.parameters())


def test_a_model_that_is_broken_has_a_loss_and_no_translations(toy: Any) -> None:
    model = build(toy.config())
    with torch.no_grad():
        next(iter(model.parameters())).fill_(math.nan)
    score = Validation(toy.store, np.arange(5), toy.tokenizer).measure(model, CPU, toy.config().train)
    assert math.isnan(score.scores["loss"].value)
    assert list(score.scores) == ["loss"]


def endless(toy: Any) -> torch.nn.Module:
    """A model that never writes the end: every output is cut."""
    torch.manual_seed(3)
    model = build(toy.config(model__output_bias=True)).eval()
    with torch.no_grad():
        model.output_bias[END] = -1e9
    return model


def steps_of(model: torch.nn.Module, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows by the rows of each step that the model takes from now on."""
    taken: list[int] = []
    step = model.step
    monkeypatch.setattr(model, "step", lambda ids, state: (taken.append(len(ids)), step(ids, state))[1])
    return taken


def test_an_output_is_cut_a_little_beyond_what_its_reference_needs(
    toy: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, rows = endless(toy), np.arange(5, 18)
    taken = steps_of(model, monkeypatch)
    validation = Validation(toy.store, rows, toy.tokenizer)
    score = validation.measure(model, CPU, toy.config().train)
    lengths = [[len(side) for side in toy.store.pair(row)] for row in rows]
    assert sum(taken) == sum(int(1.5 * tgt) + 8 for _, tgt in lengths)
    assert score.complete
    taken.clear()
    validation.measure(model, CPU, toy.config().train, last=True)
    assert sum(taken) == sum(2 * src + 32 for src, _ in lengths)


def test_a_limit_leaves_fewer_sentences_spread_over_all(toy: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that moves a second for each row of each step."""
    model, rows = endless(toy), np.arange(37)
    taken = steps_of(model, monkeypatch)
    validation, train = Validation(toy.store, rows, toy.tokenizer), toy.config().train
    whole = validation.measure(model, CPU, train)
    assert (whole.scores["bleu"].count, whole.complete) == (37, True)
    cost, measured = sum(taken), []
    monkeypatch.setattr(validation, "_score", lambda outputs: measured.extend(outputs) or original(outputs))
    original = Validation(toy.store, rows, toy.tokenizer)._score
    taken.clear()
    score = validation.measure(model, CPU, train, limit=Limit(cost / 2, lambda: float(sum(taken))))
    assert sum(taken) <= cost / 2
    assert PILOT < score.scores["bleu"].count == len(measured) < 37
    assert max(np.diff(sorted(measured))) <= 5
    assert score.complete, "the loss decides, and all of it was measured"
    assert score.seconds == pytest.approx(cost, rel=0.2)
    assert math.isclose(score.scores["loss"].value, whole.scores["loss"].value)


@pytest.mark.parametrize("times", [1, 25])
def test_a_limit_that_has_passed_leaves_a_loss_and_no_bleu(toy: Any, times: int) -> None:
    """A batch is always measured; where there are more, the loss is not that of all pairs."""
    validation = Validation(toy.store, np.repeat(np.arange(37), times), toy.tokenizer)
    score = validation.measure(endless(toy), CPU, toy.config().train, limit=Limit(0.0))
    assert math.isfinite(score.scores["loss"].value)
    assert list(score.scores) == ["loss"]
    assert score.complete == (validation.feed.count(0) == 1) == (times == 1)


def test_a_limit_that_is_never_reached_changes_nothing(toy: Any) -> None:
    torch.manual_seed(2)
    model, train = build(toy.config()).eval(), toy.config().train
    validation = Validation(toy.store, np.arange(23), toy.tokenizer)
    free, bound = (
        validation.measure(model, CPU, train, limit=limit) for limit in (None, Limit(time.monotonic() + 1e6))
    )
    for name in ("loss", "bleu", "chrf"):
        ours, theirs = free.scores[name], bound.scores[name]
        assert (ours.count, ours.value) == (theirs.count, pytest.approx(theirs.value))
