"""Blockwise decoding says what greedy search says, whatever is proposed."""

import pytest
import torch

from regard.config import Config, DecodeConfig, merge
from regard.data.inputs import pad_sources
from regard.decoding.blockwise import WAY, written
from regard.decoding.greedy import greedy
from regard.decoding.search import Rules
from regard.decoding.way import Wanted
from regard.models import build

V = 23
SOURCES = [[5, 7, 2], [11, 13, 17, 19, 2], [6, 2]]


def blockwise(seed: int, **more: object) -> torch.nn.Module:
    torch.manual_seed(seed)
    shape = {"model.vocab_size": V, "model.d_model": 16, "model.n_heads": 2, "model.d_ff": 23}
    made = build(merge(Config(), shape | {"model.kind": "blockwise", "model.dropout": 0.0} | more)).eval()
    with torch.no_grad():
        for weight in made.parameters():
            weight.add_(torch.randn_like(weight) * 0.3)
    return made.requires_grad_(False)


@pytest.mark.parametrize("seed", range(7))
@pytest.mark.parametrize("least", [0.0, 2.0])
def test_the_output_is_that_of_greedy_search(seed: int, least: float) -> None:
    model = blockwise(
        seed, **{"model.draft": 2 + seed % 4, "positions.kind": ("rotary", "sinusoidal")[seed % 2]}
    )
    rules = Rules.of(
        DecodeConfig(max_ratio=3.0, max_extra=5, min_ratio=least), map(len, SOURCES), vocab_size=V
    )
    with torch.inference_mode():
        found = WAY.search(model, pad_sources(SOURCES), rules, Wanted(DecodeConfig(beam=1)))
        wanted = greedy(model, pad_sources(SOURCES), rules)
    assert [each.ids for (each,) in found] == [each.ids for each in wanted]
    assert [each.truncated for (each,) in found] == [each.truncated for each in wanted]
    assert [each.score for (each,) in found] == pytest.approx([each.score for each in wanted], rel=1e-4)


def test_what_is_foreseen_rightly_saves_passes() -> None:
    """A model that says one token for ever, and foresees it too."""
    model = blockwise(1)
    with torch.no_grad():
        model.own_output = torch.nn.Parameter(torch.zeros(V, 16))
        model.output_bias = torch.nn.Parameter(torch.arange(V).float())
        model.drafter.narrow.weight.zero_()
        model.drafter.narrow.bias.fill_(1.0)
        model.drafter.output_weight.copy_(torch.arange(V).float()[:, None].expand(V, 16))
    rules = Rules(torch.tensor([0]), torch.tensor([13]))
    with torch.inference_mode():
        state = model.start(pad_sources(SOURCES[:1]))
        found, passes = written(model, state, rules, torch.tensor(0), Wanted(DecodeConfig(beam=1)))
    assert found.ids == [V - 1] * 13
    assert passes == 4  # one token, then four at a time


def test_a_beam_goes_step_by_step() -> None:
    model = blockwise(2)
    rules = Rules.of(DecodeConfig(), map(len, SOURCES))
    found = WAY.search(model, pad_sources(SOURCES), rules, Wanted(DecodeConfig(beam=3), 2))
    assert [len(outputs) for outputs in found] == [2, 2, 2]
