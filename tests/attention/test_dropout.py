"""Dropout by bytes obeys the law of dropout: the rate, the mean, the gradient, the generator."""

import pytest
import torch

from regard.attention import dropout as module
from regard.attention.dropout import dropout


@pytest.fixture(autouse=True, params=["native loops", "bytes"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Both ways obey the same law."""
    if request.param == "bytes":
        monkeypatch.setattr(module.fused, "fits", lambda x, residual: False)
    return str(request.param)


@pytest.mark.parametrize("p", [0.1, 0.3, 0.5])
def test_rate_and_mean(p: float) -> None:
    torch.manual_seed(0)
    out = dropout(torch.ones(401, 503), p, training=True)
    assert (out == 0).float().mean().item() == pytest.approx(p, abs=0.005)
    assert out.mean().item() == pytest.approx(1.0, abs=0.01)


def test_neighbours_are_independent() -> None:
    torch.manual_seed(0)
    kept = (dropout(torch.ones(1_000_003), 0.5, training=True) > 0).float()
    for lag in range(1, 17):
        together = torch.corrcoef(torch.stack([kept[:-lag], kept[lag:]]))[0, 1]
        assert abs(together.item()) < 0.005


def test_the_gradient_goes_where_the_value_went(way: str) -> None:
    torch.manual_seed(0)
    x = torch.randn(13, 17, requires_grad=True)
    residual = torch.randn(13, 17, requires_grad=True)
    out = dropout(x, 0.3, training=True, residual=residual)
    out.sum().backward()
    assert x.grad is not None
    assert residual.grad is not None
    kept = (out - residual).detach()
    torch.testing.assert_close(x.grad * x.detach(), kept, atol=1e-5, rtol=1e-5)
    scale = 256 / (256 - 77) if way == "bytes" else 1 / 0.7
    assert x.grad.unique().tolist() == [0.0, pytest.approx(scale)]
    assert (residual.grad == 1).all()


def test_off_when_not_training_and_at_zero() -> None:
    x, residual = torch.randn(5, 7), torch.randn(5, 7)
    assert dropout(x, 0.5, training=False) is x
    assert dropout(x, 0.0, training=True) is x
    assert torch.equal(dropout(x, 0.5, training=False, residual=residual), x + residual)


def test_the_generators_state_replays_the_mask() -> None:
    state = torch.get_rng_state()
    first = dropout(torch.ones(1001), 0.3, training=True)
    torch.set_rng_state(state)
    assert torch.equal(dropout(torch.ones(1001), 0.3, training=True), first)
