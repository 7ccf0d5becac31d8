"""The norm and the way round it against torch's layer norm: values and gradients, on every path."""

import pytest
import torch
from torch import Tensor, nn

from regard.fused.norm import fits, fork


def results(x: Tensor, norm: nn.LayerNorm, *, fused: bool) -> list[Tensor | None]:
    norm.zero_grad()
    leaf = x.clone().requires_grad_()
    normed, same = fork(leaf, norm) if fused else (norm(leaf), leaf)
    ((normed.float() * torch.cos(x)).sum() + (same * torch.sin(x)).sum()).backward()
    learned = [None if p is None else p.grad for p in (norm.weight, norm.bias)]
    return [normed, same, leaf.grad, *learned]


@pytest.mark.parametrize("width", [1, 7, 16, 37, 128])
@pytest.mark.parametrize("learns", ["both", "gain", "none"])
def test_it_is_torchs_norm(path: str, width: int, learns: str) -> None:
    torch.manual_seed(0)
    norm = nn.LayerNorm(width, elementwise_affine=learns != "none", bias=learns == "both")
    for weight in norm.parameters():
        nn.init.normal_(weight)
    x = torch.randn(29, 5, width) * 3 + 2
    assert fits(x, norm)
    for a, b in zip(results(x, norm, fused=True), results(x, norm, fused=False), strict=True):
        torch.testing.assert_close(a, b, atol=2e-4, rtol=1e-4)


def test_under_autocast_it_writes_bf16(path: str) -> None:
    torch.manual_seed(0)
    norm, x = nn.LayerNorm(37), torch.randn(5, 37)
    with torch.autocast("cpu", torch.bfloat16):
        ours = results(x, norm, fused=True)
    assert ours[0] is not None
    assert ours[0].dtype == torch.bfloat16
    for a, b in zip(ours, results(x, norm, fused=False), strict=True):
        assert a is not None
        torch.testing.assert_close(a.float(), b, atol=3e-2, rtol=2e-2)


def test_it_knows_what_it_cannot_take() -> None:
    norm = nn.LayerNorm(6)
    assert fits(torch.zeros(5, 6), norm)
    assert not fits(torch.zeros(5, 6, dtype=torch.bfloat16), norm)
    assert not fits(torch.zeros(6, 5).t(), norm)
    assert not fits(torch.zeros(0, 6), norm)
    assert not fits(torch.zeros(5, 6), nn.LayerNorm(6, dtype=torch.float64))
