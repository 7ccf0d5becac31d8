"""Augmentation: gradients go through it, each picture has its own, and the same is done to both."""

import pytest
import torch

from regard.tasks.gan.augment import augmented, coloured, cut, shifted


@pytest.mark.parametrize("kind", ["none", "shift", "all"])
def test_gradients_go_through(kind: str) -> None:
    torch.manual_seed(1)
    x = torch.randn(3, 3, 16, 16, requires_grad=True)
    out = augmented(x, kind)
    assert out.shape == x.shape
    out.sum().backward()
    assert x.grad is not None
    assert float(x.grad.abs().sum()) > 0
    assert (kind == "none") == bool(torch.equal(out, x))


def test_a_shift_moves_every_picture_by_itself_and_goes_on_as_the_edge() -> None:
    torch.manual_seed(1)
    plain = torch.arange(16.0).expand(40, 2, 16, 16)
    out = shifted(plain)
    starts = {float(row[0, 0, 0]) for row in out}
    assert starts == {0.0, 1.0, 2.0}  # moved by 2 at most; to the right the edge is repeated
    for row in out:
        steps = row[0, 0].diff()
        assert set(steps.tolist()) <= {0.0, 1.0}
        assert torch.equal(row[0], row[1])


def test_a_hole_is_half_a_side_at_most() -> None:
    torch.manual_seed(1)
    out = cut(torch.ones(50, 1, 16, 16))
    holes = (out == 0).sum((1, 2, 3))
    assert int(holes.max()) == 64
    assert int(holes.min()) >= 16


def test_colours_keep_what_stands_where() -> None:
    torch.manual_seed(1)
    x = torch.randn(4, 1, 8, 8)
    out = coloured(x)
    order = [torch.equal(a.flatten().argsort(), b.flatten().argsort()) for a, b in zip(x, out, strict=True)]
    assert all(order)
