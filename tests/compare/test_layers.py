"""The layers that are compared: shapes, and that each is what it says."""

import pytest
import torch

from regard.compare.layers import (
    WINDOW,
    Convolution,
    DilatedConvolution,
    Recurrence,
    Steps,
    contenders,
    heads_of,
)
from regard.kinds import KERNELS


def named(contender):
    return contender.name


def test_every_kernel_is_there():
    names = [contender.name for contender in contenders()]
    assert len(names) == 3 + len(KERNELS) == len(set(names))
    assert all(any(name.endswith(kind) for name in names) for kind in KERNELS if kind != "full")


@pytest.mark.parametrize("contender", contenders(32), ids=named)
def test_a_layer_keeps_the_shape_of_its_input(contender):
    x = torch.randn(2, 11, 6)
    assert contender.build(6)(x).shape == x.shape
    assert contender.hops(6, 2)(x).shape == x.shape
    if contender.core is not None:
        assert contender.core(6)(x).shape == (2, 1, 11, 6)


@pytest.mark.parametrize("contender", contenders(32), ids=named)
def test_theory_is_written_down(contender):
    assert contender.theory is not None
    assert contender.theory.length in (1, 2)


def test_enough_steps_are_the_recurrence():
    torch.manual_seed(1)
    steps = Steps(5, 6).double()
    steps.layer.layer.bias_ih_l0.data.zero_()  # an empty input then leaves an empty state as it is
    steps.layer.layer.bias_hh_l0.data.zero_()
    x = torch.randn(2, 7, 5, dtype=torch.float64)
    assert torch.allclose(steps(x), steps.layer(x))


def test_few_steps_know_few_places():
    steps = Steps(5, 2)
    x = torch.randn(1, 7, 5)
    other = x.clone()
    other[:, :3] += 1
    same = (steps(x) == steps(other)).all(-1)[0]
    assert same.tolist() == [False] * 5 + [True] * 2


def test_convolutions_see_their_windows():
    x = torch.randn(1, 13, 3, requires_grad=True)
    for layer, seen in ((Convolution(3), [5, 6, 7]), (DilatedConvolution(3, WINDOW), [0, 3, 6])):
        (gradient,) = torch.autograd.grad(layer(x)[0, 6].sum(), x)
        assert gradient[0].any(-1).nonzero().flatten().tolist() == seen


def test_recurrence_is_torchs():
    layer, x = Recurrence(3), torch.randn(2, 5, 3)
    assert torch.equal(layer(x), layer.layer(x)[0])


@pytest.mark.parametrize(("width", "heads"), [(4, 1), (64, 1), (128, 2), (100, 1), (1024, 16), (200, 1)])
def test_heads_of_64(width, heads):
    assert heads_of(width) == heads
    assert width % heads_of(width) == 0
