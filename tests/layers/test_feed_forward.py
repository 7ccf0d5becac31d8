"""Feed-forward against its formula; each place by itself."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

from regard.config.model import ACTIVATIONS
from regard.layers import FeedForward


def test_formula() -> None:
    layer = FeedForward(5, 11)
    x = torch.randn(2, 3, 5)
    hidden = (x @ layer.inner.weight.t() + layer.inner.bias).clamp(min=0)
    torch.testing.assert_close(layer(x), hidden @ layer.outer.weight.t() + layer.outer.bias)
    torch.testing.assert_close(layer(x)[:, 1:2], layer(x[:, 1:2]))


@pytest.mark.parametrize(("word", "gate"), [("swiglu", F.silu), ("geglu", F.gelu)])
def test_a_gate(word: str, gate: Callable[[torch.Tensor], torch.Tensor]) -> None:
    layer = FeedForward(5, 11, activation=word)
    x = torch.randn(2, 3, 5)
    first, second = layer.inner.weight[:11], layer.inner.weight[11:]
    left, right = layer.inner.bias[:11], layer.inner.bias[11:]
    hidden = gate(x @ first.t() + left) * (x @ second.t() + right)
    torch.testing.assert_close(layer(x), hidden @ layer.outer.weight.t() + layer.outer.bias)


def test_each_word_against_its_formula() -> None:
    x = torch.randn(7, 5)
    formulas: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "relu": lambda y: y.clamp(min=0),
        "relu2": lambda y: y.clamp(min=0) ** 2,
        "swish": lambda y: y / (1 + torch.exp(-y)),
        "gelu": lambda y: y * 0.5 * (1 + torch.erf(y / 2**0.5)),
        "gelu-tanh": lambda y: y * 0.5 * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (y + 0.044715 * y**3))),
    }
    assert {*formulas, "swiglu", "geglu"} == set(ACTIVATIONS)
    for word, formula in formulas.items():
        layer = FeedForward(5, 11, activation=word)
        hidden = formula(layer.inner(x))
        torch.testing.assert_close(layer(x), layer.outer(hidden), atol=1e-6, rtol=1e-5)
