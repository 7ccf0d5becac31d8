import math
from typing import Any

import numpy as np
import torch
from sacrebleu import corpus_bleu

from regard.config import DecodeConfig
from regard.data.batch import pad_sources
from regard.decoding.greedy import greedy
from regard.decoding.search import Rules
from regard.models import build
from regard.text.tokenizer import END
from regard.training.validation import Validation

CPU = torch.device("cpu")


def test_loss_and_bleu_against_one_sentence_at_a_time(toy: Any) -> None:
    config = toy.config()
    torch.manual_seed(2)
    model, rows = build(config).eval(), np.arange(5, 18)
    score = Validation(toy.store, rows, toy.tokenizer).measure(model, CPU, config.train)
    total, tokens, outputs, references = 0.0, 0, [], []
    for row in rows:
        src, tgt = (ids.tolist() for ids in toy.store.pair(row))
        source, mask = pad_sources([[*src, END]])
        with torch.no_grad():
            logits = model.project(model(source, mask, torch.tensor([[1, *tgt]])))[0]
            total += float(
                torch.nn.functional.cross_entropy(logits, torch.tensor([*tgt, END]), reduction="sum")
            )
            (found,) = greedy(model, source, mask, Rules.of(DecodeConfig(), [len(src) + 1]))
        tokens += len(tgt) + 1
        outputs.append(toy.tokenizer.decode(found.ids))
        references.append(toy.tokenizer.decode(tgt))
    assert math.isclose(score.loss, total / tokens, rel_tol=1e-4)
    assert math.isclose(score.bleu, corpus_bleu(outputs, [references]).score, rel_tol=1e-6)
    assert score.sentences == len(rows)
    assert "tok:13a" in score.signature


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
    assert math.isnan(score.loss)
    assert score.sentences == 0
