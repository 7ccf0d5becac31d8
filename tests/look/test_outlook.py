"""What could have come next: softmax(logits / τ) of torch, from a few numbers and the rest."""

import math

import pytest
import torch
from writers import drawn

from regard.data.inputs import Tokens
from regard.look.look import look
from regard.look.outlook import SHOWN, TEMPERATURES, outlooks, top
from regard.tasks.language.writer import Writer

R, V = 3, 53


class Letters:
    """Stands for a tokenizer."""

    def shown(self, ids, *, target=False):
        return [str(number) for number in ids]


@pytest.mark.parametrize("size", [V, SHOWN, 7])
def test_it_is_softmax_at_every_temperature(size):
    logits = torch.randn(R, size, dtype=torch.double) * 4
    for row, found in enumerate(outlooks([top(logits.log_softmax(-1))] * R, range(R), Letters())):
        for heat in TEMPERATURES:
            wanted = (logits[row] / heat).softmax(-1)
            told = torch.tensor(found.at(heat), dtype=torch.double)
            torch.testing.assert_close(told, wanted[[int(piece) for piece in found.pieces]])
            assert told[0] == pytest.approx(float(wanted.max()))


def test_a_token_that_cannot_come_has_no_share():
    logp = torch.tensor([[0.0, float("-inf"), float("-inf")]])
    (found,) = outlooks([top(logp)], [0], Letters())
    assert found.at(0.2) == (1.0, 0.0, 0.0)


def test_of_a_translation_it_is_the_softmax_of_the_logits(make, seen):
    """The whole target read at once by the model gives the same distributions as the steps of the search."""
    model, tokenizer = make(1, extra=12, least=0.5).model, make(1).tokenizer
    number = {tokenizer.token(i): i for i in range(tokenizer.vocab_size)}
    source, read = ([number[token] for token in side.tokens] for side in (seen.source, seen.read))
    with torch.inference_mode():
        logits = model.project(model(Tokens(torch.tensor([source])), torch.tensor([read])))[0]
    assert len(seen.outlook) == len(seen.target.tokens) == len(logits)
    for found, row, taken, guess in zip(seen.outlook, logits, seen.target.tokens, seen.guesses, strict=True):
        for heat in (0.2, 1.0, 2.0):
            wanted = (row / heat).softmax(-1)[[number[piece] for piece in found.pieces]]
            torch.testing.assert_close(torch.tensor(found.at(heat)), wanted.float(), atol=1e-4, rtol=1e-3)
        if taken in found.pieces:
            assert math.exp(found.logp[found.pieces.index(taken)]) == pytest.approx(
                guess.confidence, rel=1e-4
            )


def test_of_a_language_model_too():
    _, model, tokenizer = drawn("characters")
    seen = look(Writer(model, tokenizer), "the cat", tokens=5)
    ids = (
        [tokenizer.begin_id, *tokenizer.encode("the cat")] if tokenizer.leads else tokenizer.encode("the cat")
    )
    with torch.inference_mode():
        logits = model.project(model(Tokens(torch.tensor([ids]))))[0, -1]
    found = seen.outlook[len(ids) - 1]
    best, numbers = (logits.float() / 0.6).softmax(-1).topk(5)
    assert list(found.pieces[:5]) == tokenizer.shown(numbers.tolist())
    torch.testing.assert_close(torch.tensor(found.at(0.6)[:5]), best, atol=1e-4, rtol=1e-3)
