"""Word windows: against loops over places and offsets, and torch's conv1d with its own padding."""

import pytest
import torch
import torch.nn.functional as F

from regard.attention.heads import MultiHead
from regard.layers.convolution import ConvolutionDecoderLayer, ConvolutionEncoderLayer, GatedConvolution

B, T, S, D, H = 2, 7, 5, 6, 3


def by_hand(window: GatedConvolution, x: torch.Tensor, before: int) -> torch.Tensor:
    """Each output from the places that its window covers; what lies outside (T, D) is nothing."""
    weight, bias = window.conv.weight, window.conv.bias
    assert bias is not None
    out = torch.zeros_like(x)
    for t in range(len(x)):
        total = bias.clone()
        for offset in range(window.kernel):
            place = t - before + offset
            if 0 <= place < len(x):
                total = total + weight[:, :, offset] @ x[place]
        out[t] = total[:D] * total[D:].sigmoid()
    return out


@pytest.mark.parametrize("kernel", [1, 2, 3, 5])
def test_the_window_of_a_source_lies_around_each_place(kernel: int) -> None:
    torch.manual_seed(0)
    layer, x = ConvolutionEncoderLayer(D, kernel, norm="pre", dropout=0.0), torch.randn(B, T, D)
    length = 4
    real = torch.arange(T) < torch.tensor([T, length])[:, None]
    out = layer(x, real)
    for row, end in ((0, T), (1, length)):
        y = layer.around.norm(x[row, :end])
        expected = x[row, :end] + by_hand(layer.window, y, (kernel - 1) // 2)
        torch.testing.assert_close(out[row, :end], expected, atol=1e-5, rtol=1e-4)
    if kernel % 2:
        same = F.conv1d(
            layer.around.norm(x).mT, layer.window.conv.weight, layer.window.conv.bias, padding="same"
        )
        torch.testing.assert_close(layer(x), x + F.glu(same, 1).mT, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("kernel", [1, 2, 3, 5])
def test_the_window_of_a_target_ends_at_each_place_and_goes_on(kernel: int) -> None:
    torch.manual_seed(0)
    heads = MultiHead(D, H)
    layer = ConvolutionDecoderLayer(heads, D, kernel, norm="pre", dropout=0.0)
    x, memory = torch.randn(B, T, D), heads.keys_values(torch.randn(B, S, D))
    whole, end = layer(x, memory)
    middle = torch.stack([row + by_hand(layer.window, layer.around.norm(row), kernel - 1) for row in x])
    expected = middle + heads(layer.around_cross.norm(middle), memory)
    torch.testing.assert_close(whole, expected, atol=1e-5, rtol=1e-4)
    first, past = layer(x[:, :2], memory)
    second, after = layer(x[:, 2:], memory, past=past)
    torch.testing.assert_close(torch.cat([first, second], 1), whole, atol=1e-5, rtol=1e-4)
    assert after.shape == (B, kernel - 1, D)
    torch.testing.assert_close(after, end)


def test_the_reach_grows_with_depth_times_window() -> None:
    """N layers of width k: an output hears from N (k - 1) + 1 places, found by its gradient."""
    torch.manual_seed(0)
    layers = [ConvolutionEncoderLayer(D, 3, norm="post", dropout=0.0) for _ in range(4)]
    x = torch.randn(1, 21, D, requires_grad=True)
    y = x
    for layer in layers:
        y = layer(y)
    (gradient,) = torch.autograd.grad(y[0, 10].square().sum(), x)
    heard = gradient[0].abs().sum(-1).nonzero()[:, 0].tolist()
    assert heard == list(range(6, 15))
