"""Rotary positions in one pass against the formula: values and gradients, on every path."""

import pytest
import torch
from torch import Tensor

from regard.attention.absolute import sinusoids
from regard.fused.turn import fits, turn


def readable(x: Tensor, table: Tensor) -> Tensor:
    sin, cos = table.chunk(2, -1)
    left, right = x.chunk(2, -1)
    return torch.cat([left * cos - right * sin, right * cos + left * sin], -1)


@pytest.mark.parametrize("width", [2, 22, 32, 64])
@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_it_is_the_formula(path: str, width: int, kind: torch.dtype) -> None:
    torch.manual_seed(0)
    wide = torch.randn(5, 13, 2 * 3 * width, dtype=kind).chunk(2, -1)[1]  # steps over another tensor's rows
    x = wide.view(5, 13, 3, width).transpose(1, 2)
    table, grad = sinusoids(13, width, 4), torch.randn(5, 3, 13, width)
    assert fits(x)
    found = []
    for way, value in ((turn, x), (readable, x.float())):
        leaf = value.detach().requires_grad_()
        out = way(leaf, table)
        out.backward(grad.to(out.dtype))
        found.append((out, leaf.grad))
    tolerance = 1e-5 if kind == torch.float32 else 3e-2
    for ours, theirs in zip(*found, strict=True):
        assert ours is not None
        torch.testing.assert_close(ours.float(), theirs, atol=tolerance, rtol=tolerance)
