"""Norms and clipping of many gradients in one call, against torch's own."""

import pytest
import torch

from regard.fused.clip import clip, norms

SIZES = [(1,), (7, 11), (3, 5, 2), (130, 331), (0,), (33,)]


@pytest.mark.usefixtures("path")
def test_norms_are_those_of_torch() -> None:
    torch.manual_seed(0)
    tensors = [torch.randn(size) * 10.0 ** (number - 3) for number, size in enumerate(SIZES)]
    expected = torch.stack([torch.linalg.vector_norm(each) for each in tensors])
    torch.testing.assert_close(norms(tensors), expected)
    turned = torch.randn(5, 7).t()
    torch.testing.assert_close(norms([turned]), torch.linalg.vector_norm(turned)[None])
    assert norms([]).shape == (0,)
    assert not norms([torch.tensor([1.0, float("nan")])]).isfinite()


def test_a_norm_is_the_same_wherever_it_lies_and_whoever_stands_beside_it() -> None:
    torch.manual_seed(0)
    tensor = torch.randn(70_001)
    moved = torch.cat([torch.zeros(3), tensor])[3:]
    alone, beside = norms([tensor]), norms([torch.ones(5), moved])
    assert torch.equal(alone[0], beside[1])


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_what_is_too_long_is_cut_as_torch_does_it(kind: torch.dtype) -> None:
    torch.manual_seed(0)
    tensors = [torch.randn(size, dtype=kind) for size in SIZES]
    tensors.append(torch.randn(5, 7, dtype=kind).t())
    expected = [torch.nn.Parameter(each.clone()) for each in tensors]
    for each in expected:
        each.grad = each.detach().clone()
    whole = float(torch.linalg.vector_norm(norms(tensors)))
    clip(tensors, whole, 1.5)
    torch.nn.utils.clip_grad_norm_(expected, 1.5)
    for found, other in zip(tensors, expected, strict=True):
        torch.testing.assert_close(found, other.grad)


def test_what_is_short_enough_keeps_every_bit() -> None:
    tensor = torch.randn(17)
    before = tensor.clone()
    clip([tensor], float(norms([tensor])[0]), 100.0)
    assert torch.equal(tensor, before)
    clip([], 0.0, 1.0)
