"""A long kernel against its readable twin: outputs, gradients and weights."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from regard.attention import kernel as module
from regard.attention.masks import padding_mask


@contextmanager
def long_way() -> Iterator[None]:
    """Nothing is short inside the block: the path of long sequences computes."""
    before, module.SHORT = module.SHORT, 0
    try:
        yield
    finally:
        module.SHORT = before


def random_qkv(rows: int, heads: int, queries: int, keys: int, *, width: int = 11) -> list[Tensor]:
    """q, k, v as `MultiHead` hands them over: heads beside each other in memory."""
    sizes = (queries, width), (keys, width), (keys, width)
    return [torch.randn(rows, n, heads, w).transpose(1, 2).requires_grad_() for n, w in sizes]


def padding(lengths: list[int], longest: int) -> Tensor | None:
    """A mask (B, 1, 1, S) of rows of those lengths; None where all are full."""
    if min(lengths) == longest:
        return None
    return padding_mask(torch.arange(longest) < torch.tensor(lengths)[:, None])


def assert_twins(kernel: Any, q: Tensor, k: Tensor, v: Tensor, **options: Any) -> None:
    """Kernel and twin agree in the output, in the gradients of all inputs, and in the weights."""
    expected, weights = kernel.dense(q, k, v, **options)
    with long_way():
        out, shown = kernel.show(q, k, v, **options)
        torch.testing.assert_close(kernel(q, k, v, **options), expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(out, expected, atol=1e-5, rtol=1e-5)
    shown = shown.to_dense()
    torch.testing.assert_close(shown, weights, atol=1e-5, rtol=1e-5)
    assert_same_gradients(out, expected, (q, k, v))


def assert_same_gradients(out: Tensor, expected: Tensor, inputs: tuple[Tensor, ...]) -> None:
    """Both give the inputs the same gradients, for a random gradient of their own."""
    towards = torch.randn_like(expected)
    ours, theirs = (torch.autograd.grad(each, inputs, towards) for each in (out, expected))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-4)
