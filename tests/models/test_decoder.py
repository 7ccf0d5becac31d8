"""The decoder alone: prompts of unequal length side by side, cached and not; a batch changes no row."""

import pytest
import torch

from regard.config import Config, merge
from regard.data.inputs import Tokens, pad_prompts
from regard.decoding import Rules, Sampling, beam_search, greedy, sample
from regard.models.decoder import Decoder

V = 23
PROMPTS = [[1, 5, 7, 9, 11], [1], [1, 8, 6]]
KINDS = ("sinusoidal", "learned", "rotary", "relative", "alibi", "none")


def make(kind: str = "sinusoidal", **more: object) -> Decoder:
    torch.manual_seed(3)
    shape = {
        "model.d_model": 12,
        "model.n_heads": 3,
        "model.decoder_layers": 2,
        "model.d_ff": 17,
        "model.dropout": 0.0,
        "model.vocab_size": V,
        "positions.kind": kind,
        "positions.max_length": 64,
    }
    model = Decoder(merge(Config(), shape | {k.replace("__", "."): v for k, v in more.items()})).eval()
    for parameter in model.parameters():
        parameter.data *= 1.7  # further from the flat beginning, so that choices are clear
    return model


def rules_for(prompts: list[list[int]], most: int = 7) -> Rules:
    """So many tokens each, after the last one of each prompt."""
    size = torch.zeros(len(prompts), dtype=torch.int64)
    first = torch.tensor([prompt[-1] for prompt in prompts])
    return Rules(least=size, most=size + most, first=first)


def read(prompts: list[list[int]]) -> Tokens:
    return pad_prompts([prompt[:-1] for prompt in prompts])


@pytest.mark.parametrize("kind", KINDS)
@torch.inference_mode()
def test_a_prompt_and_steps_are_one_whole_pass(kind: str) -> None:
    model, ids = make(kind), torch.randint(4, V, (2, 9))
    whole = model.project(model(Tokens(ids)))
    for cut in (0, 1, 5):
        state = model.start(Tokens(ids[:, :cut]))
        for t in range(cut, 9):
            logits, state = model.step(ids[:, t], state)
            torch.testing.assert_close(logits, whole[:, t], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("kind", KINDS)
@torch.inference_mode()
def test_neighbours_and_padding_change_no_row(kind: str) -> None:
    model = make(kind)
    state = model.start(read(PROMPTS))
    logits, state = model.step(rules_for(PROMPTS).beginning(), state)
    second, _ = model.step(torch.tensor([4, 5, 6]), state)
    for row, prompt in enumerate(PROMPTS):
        alone, own = model.step(torch.tensor([prompt[-1]]), model.start(read([prompt])))
        torch.testing.assert_close(logits[row : row + 1], alone, atol=1e-5, rtol=1e-4)
        alone, _ = model.step(torch.tensor([4 + row]), own)
        torch.testing.assert_close(second[row : row + 1], alone, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("window", [2, 3])
@torch.inference_mode()
def test_a_window_holds_the_padding_that_it_can_reach(window: int) -> None:
    model = make("rotary", model__n_heads=2, attention__kind="local", attention__window=window)
    together = greedy(model, read(PROMPTS), rules_for(PROMPTS))
    alone = [greedy(model, read([prompt]), rules_for([prompt]))[0] for prompt in PROMPTS]
    assert [each.ids for each in together] == [each.ids for each in alone]


@pytest.mark.parametrize("kind", ["sinusoidal", "rotary"])
@torch.inference_mode()
def test_every_search_goes_on_from_prompts(kind: str) -> None:
    model, rules = make(kind, model__n_heads=2), rules_for(PROMPTS)
    first = greedy(model, read(PROMPTS), rules)
    assert [each for (each,) in beam_search(model, read(PROMPTS), rules, beam=1)] == first
    drawing = Sampling(temperature=1.5, seed=5)
    drawn = sample(model, read(PROMPTS), rules, sampling=drawing, draws=2)
    for row, prompt in enumerate(PROMPTS):
        own = rules_for([prompt])
        assert greedy(model, read([prompt]), own)[0].ids == first[row].ids
        (alone,) = sample(model, read([prompt]), own, sampling=drawing, draws=2)
        assert [each.ids for each in alone] == [each.ids for each in drawn[row]]


@torch.no_grad()
def test_the_future_changes_nothing_past() -> None:
    model, ids = make("rotary", model__n_heads=2), torch.randint(4, V, (2, 8))
    changed = ids.clone()
    changed[:, 5:] = (changed[:, 5:] + 3) % V
    torch.testing.assert_close(model(Tokens(ids))[:, :5], model(Tokens(changed))[:, :5])
