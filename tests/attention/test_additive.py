"""The sliced additive score against the formula, its gradients, and the bound on its memory."""

import pytest
import torch
from sizes import Largest
from torch import Tensor

from regard.attention import additive
from regard.attention.additive import Additive


def written_out(score: Additive, q: Tensor, k: Tensor) -> Tensor:
    """The formula with its (B, H, T, S, hidden) tensor."""
    a = torch.einsum("huk,bhtk->bhtu", score.query, q)
    b = torch.einsum("huk,bhsk->bhsu", score.key, k)
    return (torch.tanh(a[:, :, :, None] + b[:, :, None]) * score.value[:, 0, None, None]).sum(-1)


@pytest.mark.parametrize("size", [1, 200, 1 << 18])
def test_value_and_gradients_are_those_of_the_formula(size: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(additive, "SLICE", size)
    torch.manual_seed(size)
    score = Additive(3, 11).double()
    q, k = (torch.randn(2, 3, n, 11, dtype=torch.double, requires_grad=True) for n in (5, 7))
    inputs = [q, k, *score.parameters()]
    ours, theirs = score(q, k), written_out(score, q, k)
    torch.testing.assert_close(ours, theirs)
    grad = torch.randn_like(ours)
    for one, other in zip(
        torch.autograd.grad(ours, inputs, grad), torch.autograd.grad(theirs, inputs, grad), strict=True
    ):
        torch.testing.assert_close(one, other)


def test_no_tensor_of_training_is_larger_than_the_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(additive, "SLICE", 1 << 13)
    score = Additive(2, 8)
    q, k = (torch.randn(2, 2, 61, 8, requires_grad=True) for _ in "qk")
    with Largest() as watch:
        score(q, k).sum().backward()
    whole, scores = 2 * 2 * 61 * 61 * additive.HIDDEN, 2 * 2 * 61 * 61
    assert watch.numbers <= max(additive.SLICE, scores) < whole
    with Largest() as watch:
        written_out(score, q, k).sum().backward()
    assert watch.numbers >= whole  # the watch does see such a tensor


def test_saturated_units_stay_finite_and_right() -> None:
    score = Additive(1, 1, hidden=1)
    for weight in score.parameters():
        torch.nn.init.ones_(weight)
    q = torch.tensor([[[[1e4], [-1e4], [0.0], [10.0]]]], requires_grad=True)
    out = score(q, torch.tensor([[[[0.0], [1.0], [-10.0]]]]))
    out.sum().backward()
    expected = [[1.0, 1.0, 1.0], [-1.0, -1.0, -1.0], [0.0, 0.7616, -1.0], [1.0, 1.0, 0.0]]
    torch.testing.assert_close(out[0, 0], torch.tensor(expected), atol=1e-4, rtol=0)
    assert q.grad is not None
    assert q.grad.isfinite().all()


def test_nothing_to_look_at_and_nobody_looking() -> None:
    score = Additive(3, 11)
    assert score(torch.randn(2, 3, 5, 11), torch.randn(2, 3, 0, 11)).shape == (2, 3, 5, 0)
    assert score(torch.randn(2, 3, 0, 11), torch.randn(2, 3, 7, 11)).shape == (2, 3, 0, 7)


def test_bfloat16_is_computed_in_float32() -> None:
    torch.manual_seed(0)
    score = Additive(3, 11)
    q, k = (torch.randn(2, 3, n, 11, requires_grad=True) for n in (5, 7))
    with torch.autocast("cpu", torch.bfloat16):
        out = score(q, k)
    out.sum().backward()
    assert out.dtype == torch.float32
    torch.testing.assert_close(out, written_out(score, q, k), atol=0.1, rtol=0.1)
