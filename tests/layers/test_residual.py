"""Residual against the two formulas."""

import torch
from torch import nn

from regard.layers import Residual


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
