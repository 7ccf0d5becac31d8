"""Paths and chains against what can be worked out by hand."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from regard.compare.layers import WINDOW, Contender, SelfAttention, contenders
from regard.compare.reach import chain, longest_path, reached
from regard.config import Config, merge

CONVOLUTION, DILATED, RECURRENCE, ATTENTION = contenders()[:4]


@settings(max_examples=10)
@given(length=st.integers(2, 40))
def test_paths_are_those_of_theory(length):
    assert longest_path(CONVOLUTION, length) == math.ceil((length - 1) / (WINDOW // 2))
    assert longest_path(RECURRENCE, length) == length - 1
    assert longest_path(ATTENTION, length) == 1
    depth = longest_path(DILATED, length)
    assert WINDOW ** (depth - 1) < length <= WINDOW**depth


def test_a_window_needs_as_many_layers_as_it_fits_into_the_length(monkeypatch):
    import regard.compare.layers as layers

    real = merge
    monkeypatch.setattr(
        layers, "merge", lambda config, changes: real(Config(), changes | {"attention.window": 5})
    )
    local = Contender(
        "local",
        None,
        lambda width: SelfAttention(width, "local", 64),
        lambda width, n: nn.Sequential(*(SelfAttention(width, "local", 64) for _ in range(n))),
    )
    assert longest_path(local, 31) == math.ceil(30 / 5)


def test_what_is_never_reached():
    alone = Contender(
        "alone", None, lambda width: nn.Linear(width, width), lambda width, n: nn.Linear(width, width)
    )
    assert longest_path(alone, 7) is None


def test_only_the_past_is_asked_of_what_sees_the_past():
    assert reached(lambda x: x.cumsum(1), 7, 3, causal=True)
    assert not reached(lambda x: x.cumsum(1), 7, 3, causal=False)


def test_chains():
    assert chain(nn.Sequential(nn.Tanh(), nn.Tanh(), nn.Tanh()), 5, 3) == 3
    # Queries, their scaling, scores, softmax, sum, output.
    assert {chain(ATTENTION.build(8), length, 8) for length in (3, 17)} == {6}
    counts = [chain(RECURRENCE.build(8), length, 8) for length in (3, 5, 7)]
    assert counts[2] - counts[1] == counts[1] - counts[0] > 0


def test_shapes_are_no_operations():
    class Turn(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.mT.unsqueeze(0).squeeze(0).reshape(-1).view(3, 5).exp()

    assert chain(Turn(), 5, 3) == 1


def test_a_long_chain_is_no_deep_recursion():
    assert chain(nn.Sequential(*(nn.Tanh() for _ in range(3000))), 2, 1) == 3000


@pytest.mark.parametrize("causal", [True, False])
def test_one_place_is_always_reached(causal):
    assert reached(torch.tanh, 1, 3, causal=causal)
