"""Feed-forward against its formula; each place by itself."""

import torch

from regard.layers import FeedForward


def test_formula() -> None:
    layer = FeedForward(5, 11)
    x = torch.randn(2, 3, 5)
    hidden = (x @ layer.inner.weight.t() + layer.inner.bias).clamp(min=0)
    torch.testing.assert_close(layer(x), hidden @ layer.outer.weight.t() + layer.outer.bias)
    torch.testing.assert_close(layer(x)[:, 1:2], layer(x[:, 1:2]))
