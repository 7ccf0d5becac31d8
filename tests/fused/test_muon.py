"""Muon's native loops against torch's products; where a machine has none, torch's are taken."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from regard.fused.library import choose, dots
from regard.fused.muon import fits
from regard.process import machine
from regard.training import optimizer
from regard.training.optimizer import Muon, orthogonalise

SHAPES = [
    ((96, 96), 1),
    ((192, 64), 3),
    ((64, 160), 1),
    ((160, 64), 1),
    ((64, 64), 2),
    ((32, 32, 5), 1),
    ((96, 128), 1),
]


@pytest.fixture
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def gradients(shape: tuple[int, ...], kind: str) -> Tensor:
    """Numbers without a pattern, or a matrix with few directions that matter."""
    x = torch.randn(shape)
    if kind == "even":
        return x
    u, s, v = torch.linalg.svd(x.flatten(1), full_matrices=False)
    return ((u * torch.arange(1, len(s) + 1) ** -1.0) @ v).view(shape)


def moved(shape: tuple[int, ...], cut: int, kind: str = "even", *, offset: int = 0) -> tuple[Tensor, Tensor]:
    """A weight after three steps in bf16, and its momentum; gradients lie at an odd place with an offset."""
    torch.manual_seed(0)
    weight = nn.Parameter(torch.randn(shape))
    muon = Muon([{"params": [weight], "cut": cut}], lr=0.1, weight_decay=0.5)
    for _ in range(3):
        grad = gradients(shape, kind)
        weight.grad = torch.cat([torch.zeros(offset), grad.reshape(-1)])[offset:].view(shape)
        with torch.autocast("cpu", torch.bfloat16):
            muon.step()
    return weight.detach(), muon.momentum(weight)


@pytest.mark.parametrize("kind", ["even", "few"])
@pytest.mark.parametrize(("shape", "cut"), SHAPES)
def test_they_move_as_torch_does(
    shape: tuple[int, ...], cut: int, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, momentum = moved(shape, cut, kind)
    monkeypatch.setattr(optimizer, "fits", lambda *_: False)
    expected, past = moved(shape, cut, kind)
    torch.manual_seed(0)
    start = torch.randn(shape) * 0.95**3
    assert (found - expected).norm() < 0.04 * (expected - start).norm()  # both are rounded
    torch.testing.assert_close(momentum, past)


def test_all_directions_of_a_wide_matrix_are_moved_alike() -> None:
    """Against the singular vectors themselves: what comes out of one step is near U V'."""
    torch.manual_seed(0)
    for shape in ((64, 256), (256, 64), (64, 64)):
        weight = nn.Parameter(torch.zeros(shape))
        weight.grad = torch.randn(shape)
        with torch.autocast("cpu", torch.bfloat16):
            Muon([weight], lr=1.0).step()
        u, _, v = torch.linalg.svd(weight.grad, full_matrices=False)
        sizes = -(u.t() @ weight.detach() @ v.t()).diagonal() / (0.2 * max(shape) ** 0.5)
        exact = (u.t() @ orthogonalise(weight.grad[None])[0] @ v.t()).diagonal()
        assert (sizes - exact).abs().max() < 0.06


@pytest.mark.usefixtures("threads")
def test_neither_threads_nor_neighbours_nor_places_in_memory_change_a_bit() -> None:
    torch.manual_seed(0)
    starts = [torch.randn(96, 64) for _ in range(7)]
    grads = [torch.randn(96, 64) for _ in range(7)]
    found = []
    for count, many in ((1, 7), (2, 7), (5, 7), (1, 1)):
        torch.set_num_threads(count)
        weights = [nn.Parameter(start.clone()) for start in starts[:many]]
        for weight, grad in zip(weights, grads, strict=False):
            weight.grad = grad.clone()
        with torch.autocast("cpu", torch.bfloat16):
            Muon(weights, lr=0.1).step()
        found.append([weight.detach() for weight in weights])
    for others in found[1:]:
        assert all(torch.equal(a, b) for a, b in zip(found[0], others, strict=False))
    for a, b in zip(moved((64, 160), 1), moved((64, 160), 1, offset=3), strict=True):
        assert torch.equal(a, b)


def test_they_take_whole_panels_in_bf16_and_leave_the_rest_to_torch() -> None:
    here = dots() and not machine.facts().tiles
    weight = torch.zeros(64, 96)
    assert not fits(weight, 1)  # fp32 is asked for
    with torch.autocast("cpu", torch.bfloat16):
        assert fits(weight, 1) == fits(weight, 2) == here
        assert not fits(weight, 4)  # of 16 rows each
        assert not fits(torch.zeros(64, 97), 1)
        assert not fits(torch.zeros(2048, 2048), 1)
        assert not fits(torch.zeros(96, 64).t(), 1)
        assert not fits(weight.double(), 1)
        assert not fits(weight.to("meta"), 1)
        assert choose("portable") == "portable"
        assert not fits(weight, 1)
        choose()


def test_a_gradient_of_zeros_moves_nothing() -> None:
    weight = nn.Parameter(torch.ones(32, 64))
    weight.grad = torch.zeros(32, 64)
    with torch.autocast("cpu", torch.bfloat16):
        Muon([weight], lr=0.1).step()
    assert torch.equal(weight, torch.ones(32, 64))
