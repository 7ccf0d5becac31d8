"""Residual against the two formulas."""

import torch
from torch import nn

from regard.layers import Residual
from regard.layers.residual import gain_and_bias


def test_post_and_pre_norm() -> None:
    x, f = torch.randn(2, 5, 7), nn.Linear(7, 7)
    post, pre = Residual(7, norm="post", dropout=0.0), Residual(7, norm="pre", dropout=0.0)
    nn.init.normal_(post.norm.weight)
    nn.init.normal_(pre.norm.weight)
    torch.testing.assert_close(post(x, f), post.norm(x + f(x)))
    torch.testing.assert_close(pre(x, f), x + f(pre.norm(x)))


def test_dropout_acts_on_the_sub_layer_only() -> None:
    torch.manual_seed(0)
    around = Residual(7, norm="pre", dropout=0.5)
    x = torch.randn(11, 13, 7)
    moved = around(x, lambda y: torch.ones_like(y)) - x
    assert set(moved.round(decimals=4).unique().tolist()) == {0.0, 2.0}
    assert torch.equal(around.eval()(x, lambda y: torch.zeros_like(y)), x)


def test_a_norm_with_and_without_what_it_learns() -> None:
    x = torch.randn(3, 7)
    norm = nn.LayerNorm(7)
    nn.init.normal_(norm.weight)
    nn.init.normal_(norm.bias)
    for left_out in ((), ("bias",), ("bias", "weight")):
        for name in left_out:
            norm.register_parameter(name, None)
        gain, bias = gain_and_bias(norm)
        for row, found in zip(x.tolist(), norm(x).tolist(), strict=True):
            mean = sum(row) / 7
            deviation = (sum((each - mean) ** 2 for each in row) / 7 + norm.eps) ** 0.5
            wanted = [
                gain[i].item() * (each - mean) / deviation + bias[i].item() for i, each in enumerate(row)
            ]
            torch.testing.assert_close(torch.tensor(found), torch.tensor(wanted), atol=1e-5, rtol=1e-4)
    assert gain.tolist() == [1.0] * 7
    assert bias.tolist() == [0.0] * 7


def test_root_mean_squares() -> None:
    x, f = torch.randn(2, 5, 7), nn.Linear(7, 7)
    for word in ("post-rms", "pre-rms"):
        around = Residual(7, norm=word, dropout=0.0)
        nn.init.normal_(around.norm.weight)

        def norm(y: torch.Tensor, gain: torch.Tensor = around.norm.weight) -> torch.Tensor:
            return gain * y / (y.square().mean(-1, keepdim=True) + 1e-5).sqrt()

        wanted = norm(x + f(x)) if word == "post-rms" else x + f(norm(x))
        torch.testing.assert_close(around(x, f), wanted)
        around.norm.keep(norm_weights="none", norm_eps=1e-5, bias=True)
        assert not list(around.norm.parameters())
