"""Attention in one pass against the formula as it is written: output and gradients, on every path."""

import pytest
import torch
from torch import Tensor

from regard.attention.attend import attend_readable
from regard.attention.masks import band_mask, join
from regard.fused.attend import attend, fits

SIZES = [
    (2, 3, 5, 7, 11),
    (3, 2, 20, 21, 64),
    (1, 1, 1, 1, 2),
    (2, 1, 19, 37, 32),
    (1, 2, 71, 71, 13),
]  # B, H, T, S, K


def inputs(size: tuple[int, ...], kind: torch.dtype) -> list[Tensor]:
    """q, k and v as projections give them, keys and values in one tensor; the last is the gradient."""
    torch.manual_seed(0)
    rows, heads, queries, keys, width = size
    q = torch.randn(rows, queries, heads * width, dtype=kind)
    both = torch.randn(rows, keys, 2 * heads * width, dtype=kind).chunk(2, -1)
    split = [x.view(rows, x.shape[1], heads, width).transpose(1, 2) for x in (q, *both)]
    return [*split, torch.randn(rows, heads, queries, width, dtype=kind)]


def results(way: object, q: Tensor, k: Tensor, v: Tensor, grad: Tensor) -> list[Tensor]:
    leaves = [x.detach().requires_grad_() for x in (q, k, v)]
    out = way(*leaves)  # type: ignore[operator]
    out.backward(grad.to(out.dtype))
    return [out, *(leaf.grad for leaf in leaves)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("hidden", ["nothing", "padding", "future", "both"])
@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_it_is_the_formula(path: str, size: tuple[int, ...], hidden: str, kind: torch.dtype) -> None:
    q, k, v, grad = inputs(size, kind)
    mask = None
    if hidden in ("padding", "both"):
        mask = torch.rand(size[0], 1, 1, size[3]) > 0.3
        mask[0] = False  # a row that sees nothing
    options = {"mask": mask, "causal": hidden in ("future", "both")}
    scale = size[-1] ** -0.5
    assert fits(q, k, v, mask)
    ours = results(lambda *x: attend(*x, **options, scale=scale), q, k, v, grad)  # type: ignore[arg-type]
    exact = [x.float() for x in (q, k, v, grad)]
    twin = results(lambda *x: attend_readable(*x, **options)[0], *exact)  # type: ignore[arg-type]
    loose = {"atol": 1e-5, "rtol": 1e-5} if kind == torch.float32 else {"atol": 3e-2, "rtol": 2e-2}
    for a, b in zip(ours, twin, strict=True):
        torch.testing.assert_close(a.float(), b, **loose)


@pytest.mark.parametrize("size", [*SIZES, (1, 2, 16, 16, 8), (2, 1, 130, 130, 32)])
@pytest.mark.parametrize("window", [(0, 0), (3, 0), (5, 2), (32, 8), (-1, 4), (7, -1), (6, 33)])
@pytest.mark.parametrize("hidden", ["nothing", "padding"])
def test_a_window_is_the_formula_with_a_band(
    path: str, size: tuple[int, ...], window: tuple[int, int], hidden: str
) -> None:
    q, k, v, grad = inputs(size, torch.float32)
    mask = None
    if hidden == "padding":
        mask = torch.rand(size[0], 1, 1, size[3]) > 0.3
        mask[0] = False
    before, after = (999 if each < 0 else each for each in window)
    band = band_mask(size[2], size[3], before, after, q.device)
    scale = size[-1] ** -0.5
    attend(*inputs((1, 1, 200, 200, 64), torch.float32)[:3])  # what lies in the memory that is used again
    ours = results(lambda *x: attend(*x, mask=mask, scale=scale, window=window), q, k, v, grad)
    twin = results(lambda *x: attend_readable(*x, mask=join(mask, band))[0], q, k, v, grad)
    for a, b in zip(ours, twin, strict=True):
        torch.testing.assert_close(a, b, atol=1e-5, rtol=1e-5)


def test_a_number_that_is_none_stays_none(path: str) -> None:
    q, k, v, _ = inputs(SIZES[0], torch.float32)
    q[1, 2, 3, 4] = float("nan")
    out = attend(q, k, v)
    assert out[1, 2, 3].isnan().all()
    assert out[0].isfinite().all()


def test_it_knows_what_it_cannot_take() -> None:
    q, k, v, _ = inputs(SIZES[0], torch.float32)
    assert fits(q, k, v, torch.ones(1, 1, 1, 7) > 0)
    assert not fits(q, k, v, torch.ones(2, 1, 5, 7) > 0)
    assert not fits(q, k, v[..., :10], None)
    assert not fits(q.double(), k, v, None)
    assert not fits(q, k[:, :1], v[:, :1], None)
    assert not fits(q.transpose(2, 3).contiguous().transpose(2, 3), k, v, None)
