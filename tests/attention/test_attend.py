"""`attend` against a naive loop, against torch, and its fast way against its readable twin."""

import math
import sys
from typing import Any

import pytest
import torch
from sizes import Largest
from torch import Tensor

from regard.attention import attend, attend_readable, weigh
from regard.attention.attend import SHORT
from regard.attention.masks import causal_mask
from regard.attention.score import Dot

B, H, T, S, K = 2, 3, 5, 7, 11


@pytest.fixture
def qkv() -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(0)
    return torch.randn(B, H, T, K), torch.randn(B, H, S, K), torch.randn(B, H, S, K + 2)


def naive(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, scale: float) -> Tensor:
    """Attention one number at a time."""
    out = torch.zeros(*q.shape[:3], v.shape[-1])
    for b in range(q.shape[0]):
        for h in range(q.shape[1]):
            for i in range(q.shape[2]):
                seen = [j for j in range(k.shape[2]) if mask is None or bool(mask[b, h, i, j])]
                scores = [
                    scale * sum(float(x * y) for x, y in zip(q[b, h, i], k[b, h, j], strict=True))
                    for j in seen
                ]
                top = max(scores, default=0.0)
                powers = [math.exp(s - top) for s in scores]
                for j, power in zip(seen, powers, strict=True):
                    out[b, h, i] += power / sum(powers) * v[b, h, j]
    return out


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("scale", [1.0, K**-0.5])
def test_equals_a_naive_loop(qkv: tuple[Tensor, Tensor, Tensor], masked: bool, scale: float) -> None:
    mask = torch.rand(B, H, T, S) > 0.4 if masked else None
    expected = naive(*qkv, mask, scale)
    for found in (
        attend(*qkv, mask=mask, score=Dot(scale)),
        attend_readable(*qkv, mask=mask, score=Dot(scale))[0],
    ):
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("queries", [T, S])
def test_fast_equals_readable_with_everything_on(qkv: tuple[Tensor, Tensor, Tensor], queries: int) -> None:
    _, k, v = qkv
    q, bias = torch.randn(B, H, queries, K), torch.randn(1, H, queries, S)
    mask = torch.tensor([[True] * S, [True] * 4 + [False] * 3])[:, None, None]
    options = {"mask": mask, "bias": bias, "causal": True}
    torch.testing.assert_close(attend(q, k, v, **options), attend_readable(q, k, v, **options)[0])


def test_gradients_of_the_fast_way_equal_the_readable_ones() -> None:
    length = math.isqrt(SHORT) + 3  # long enough for SDPA even where gradients are needed
    grads = []
    for way in (attend, lambda *a, **o: attend_readable(*a, **o)[0]):
        torch.manual_seed(3)
        parts = [torch.randn(1, 2, length, 4, requires_grad=True) for _ in range(3)]
        way(*parts, causal=True).square().sum().backward()
        grads.append([part.grad for part in parts])
    for fast, readable in zip(*grads, strict=True):
        torch.testing.assert_close(fast, readable, atol=1e-4, rtol=1e-4)


def test_equals_torch_sdpa(qkv: tuple[Tensor, Tensor, Tensor]) -> None:
    expected = torch.nn.functional.scaled_dot_product_attention(*qkv)
    torch.testing.assert_close(attend_readable(*qkv)[0], expected)


@pytest.mark.parametrize("needs_gradient", [False, True])
def test_a_row_with_nothing_to_see_gives_zeros(
    qkv: tuple[Tensor, Tensor, Tensor], needs_gradient: bool
) -> None:
    q, k, v = (part.requires_grad_(needs_gradient) for part in qkv)
    mask = torch.ones(B, 1, 1, S, dtype=torch.bool)
    mask[1] = False
    out = attend(q, k, v, mask=mask)
    assert out[1].abs().max() == 0
    assert out[0].abs().min() > 0
    if needs_gradient:
        out.sum().backward()
        assert q.grad is not None
        assert q.grad.isfinite().all()


def test_causal_queries_stand_at_the_end_of_the_keys(qkv: tuple[Tensor, Tensor, Tensor]) -> None:
    q, k, v = qkv
    torch.testing.assert_close(attend(q, k, v, causal=True), attend(q, k, v, mask=causal_mask(T, S)))


def test_dropout_drops_weights_and_keeps_the_mean() -> None:
    torch.manual_seed(5)
    q, k, v = torch.randn(1, 1, 1, 4), torch.randn(1, 1, 9, 4), torch.randn(1, 1, 9, 2)
    many = torch.stack([attend_readable(q, k, v, dropout=0.3)[0] for _ in range(4000)]).mean(0)
    torch.testing.assert_close(many, attend(q, k, v), atol=0.03, rtol=0.05)


def test_weights_are_what_the_output_is_made_of(qkv: tuple[Tensor, Tensor, Tensor]) -> None:
    q, k, v = qkv
    out, weights = attend_readable(q, k, v)
    assert weights.shape == (B, H, T, S)
    torch.testing.assert_close(weights, weigh(q, k))
    torch.testing.assert_close(weights @ v, out)


@pytest.mark.parametrize(
    "case", ["padded", "causal and padded", "after a past", "dropout", "added", "widths"]
)
def test_scores_that_are_never_all_there(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where torch's fused attention would build them, a long sequence goes in slices of the queries."""
    torch.manual_seed(3)
    length, past = 67, 30 if case == "after a past" else 0
    q, k, v = (torch.randn(2, 3, n, 4, requires_grad=True) for n in (length, length + past, length + past))
    options: dict[str, Any] = {"causal": "causal" in case or "past" in case}
    if "padded" in case:
        options["mask"] = torch.arange(length) < torch.tensor([length, 40])[:, None, None, None]
    if case == "added":
        options["bias"] = torch.randn(3, length, length)
    if case == "widths":
        v = torch.randn(2, 3, length, 5, requires_grad=True)
    if case == "dropout":
        options["dropout"] = 0.25
    expected = attend_readable(q, k, v, **(options | {"dropout": 0.0}))[0]
    module = sys.modules["regard.attention.attend"]  # the package has a function of that name
    monkeypatch.setattr(module, "LONG", 500)
    monkeypatch.setattr(module, "SHORT", 0)
    with Largest() as seen:
        out = attend(q, k, v, **options)
        gradients = torch.autograd.grad(out.sum(), (q, k, v))
    if case == "dropout":
        assert out.shape == expected.shape
    else:
        torch.testing.assert_close(out, expected, atol=1e-5, rtol=1e-5)
        for one, other in zip(gradients, torch.autograd.grad(expected.sum(), (q, k, v)), strict=True):
            torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)
    if case != "padded":  # that one is torch's own
        assert seen.numbers < 2 * 3 * length * length
