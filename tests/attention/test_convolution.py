"""Attention over pixels against torch's convolution."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st

from regard.attention.convolution import from_convolution
from regard.errors import UsageError

SIZES = st.integers(1, 7)


@given(
    kernel=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    channels=st.tuples(SIZES, SIZES),
    image=st.tuples(st.integers(1, 9), st.integers(1, 9)),
    with_bias=st.booleans(),
    seed=st.integers(0, 2**31),
)
def test_attention_is_the_convolution(kernel, channels, image, with_bias, seed):
    torch.manual_seed(seed)
    weight = torch.randn(channels[1], channels[0], *kernel)
    bias = torch.randn(channels[1]) if with_bias else None
    pixels = torch.randn(2, channels[0], *image)
    found = from_convolution(weight, bias)(pixels)
    # torch warns where an even kernel is padded unevenly; padding by hand is the same and silent.
    (down, right) = kernel
    pads = ((right - 1) // 2, right // 2, (down - 1) // 2, down // 2)
    wanted = F.conv2d(F.pad(pixels, pads), weight, bias)
    assert found.shape == wanted.shape
    assert (found - wanted).abs().max() <= 1e-4


def test_a_real_layer_with_same_padding():
    torch.manual_seed(1)
    layer = torch.nn.Conv2d(3, 5, 3, padding="same")
    pixels = torch.randn(2, 3, 11, 13)
    found = from_convolution(layer.weight, layer.bias)(pixels)
    assert (found - layer(pixels)).abs().max() <= 1e-4


def test_each_head_looks_at_its_pixel_and_nowhere_beyond_the_border():
    rows, columns = 5, 7
    twin = from_convolution(torch.randn(2, 3, 3, 3))
    weights = twin.weights(rows, columns).detach()  # (H, T, T)
    for head, (down, right) in enumerate(twin.centres.detach().int().tolist()):
        for query in range(rows * columns):
            y, x = query // columns + down, query % columns + right
            wanted = torch.zeros(rows * columns)
            if 0 <= y < rows and 0 <= x < columns:
                wanted[y * columns + x] = 1.0
            assert torch.allclose(weights[head, query], wanted, atol=1e-6)


def test_a_blunt_head_is_no_convolution():
    torch.manual_seed(1)
    weight, pixels = torch.randn(2, 3, 3, 3), torch.randn(1, 3, 5, 7)
    wanted = F.conv2d(pixels, weight, padding=1)
    errors = [
        (from_convolution(weight, sharpness=alpha)(pixels) - wanted).abs().max().item()
        for alpha in (1, 8, 32)
    ]
    assert errors[0] > 0.1 > errors[1] > 1e-4 > errors[2]


def test_the_twin_can_be_trained():
    twin = from_convolution(torch.randn(2, 3, 3, 3), torch.zeros(2), sharpness=1.0)
    twin(torch.randn(1, 3, 5, 7)).square().sum().backward()
    assert all(each.grad is not None and each.grad.isfinite().all() for each in twin.parameters())
    assert twin.centres.grad.abs().sum() > 0


@pytest.mark.parametrize("shape", [(2, 3, 3), (2, 3, 3, 3, 3)])
def test_weights_of_another_convolution_are_refused(shape):
    with pytest.raises(UsageError, match=f"4 axes .*, not {len(shape)}"):
        from_convolution(torch.zeros(shape))


def test_a_flat_quadratic_is_refused():
    with pytest.raises(UsageError, match=r"sharpness \(0\) must be above 0"):
        from_convolution(torch.zeros(1, 1, 3, 3), sharpness=0.0)
