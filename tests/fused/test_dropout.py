"""Dropout by a hash against its readable twin, bit for bit, on every path."""

import pytest
import torch

from regard.fused.dropout import dropout, fits, keep


def seed_of_next() -> int:
    """The seed that the next call draws, which stays to be drawn."""
    state = torch.get_rng_state()
    seed = int(torch.empty((), dtype=torch.int64).random_()) * 2 + 1
    torch.set_rng_state(state)
    return seed


@pytest.mark.parametrize("size", [1, 37, 70_001])
@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_values_and_gradients_are_those_of_the_twin(path: str, size: int, kind: torch.dtype) -> None:
    torch.manual_seed(size)
    x = torch.randn(size, dtype=kind).requires_grad_()
    residual = torch.randn(size).requires_grad_()
    seed = seed_of_next()
    out = dropout(x, 0.3, residual=residual)
    grad = torch.randn(size)
    out.backward(grad)
    factor = keep(seed, size, 0.3) / 0.7
    torch.testing.assert_close(out, residual + x.float() * factor)
    torch.testing.assert_close(x.grad, (grad * factor).to(kind))
    assert residual.grad is not None
    assert torch.equal(residual.grad, grad)


def test_without_a_residual_the_type_stays(path: str) -> None:
    torch.manual_seed(1)
    x, seed = torch.randn(13, 17, dtype=torch.bfloat16), seed_of_next()
    out = dropout(x, 0.5)
    assert out.dtype == torch.bfloat16
    assert torch.equal(out, x * keep(seed, x.numel(), 0.5).view(13, 17) * 2)


def test_two_seeds_have_nothing_in_common() -> None:
    first, second = keep(12345, 100_003, 0.5).float(), keep(12347, 100_003, 0.5).float()
    assert abs(torch.corrcoef(torch.stack([first, second]))[0, 1].item()) < 0.01
    assert first.mean().item() == pytest.approx(0.5, abs=0.01)


def test_it_knows_what_it_cannot_take() -> None:
    x = torch.zeros(5, 6)
    assert fits(x, None)
    assert fits(x.bfloat16(), x)
    assert not fits(x, x.bfloat16())
    assert not fits(x.t(), None)
    assert not fits(x, x.view(6, 5).t())
