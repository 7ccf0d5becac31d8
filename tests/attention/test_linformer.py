"""Projected keys and values: the formula, the identity, padding, sharing, the bound."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sizes import Largest
from torch import nn
from twins import assert_same_gradients, padding, random_qkv

from regard.attention import MultiHead, attend, attend_readable
from regard.attention.kernel import tie
from regard.attention.linformer import Linformer
from regard.attention.site import reading
from regard.errors import DataError, UsageError


def by_hand(
    kernel: Linformer, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, real: torch.Tensor
) -> torch.Tensor:
    """The formula, head by head and place by place."""
    heads = []
    for h in range(q.shape[1]):
        rows = [
            weight[h if kernel.share == "none" else 0, :, : k.shape[2]]
            for weight in (kernel.of_keys, kernel.of_values)
        ]
        keys, values = (
            torch.einsum("rs,bsk,bs->brk", row, x[:, h], real.to(x))
            for row, x in zip(rows, (k, v), strict=True)
        )
        heads.append(torch.softmax(q[:, h] @ keys.transpose(1, 2) * q.shape[-1] ** -0.5, -1) @ values)
    return torch.stack(heads, 1)


@settings(max_examples=25, deadline=None)
@given(
    length=st.integers(1, 40),
    missing=st.integers(0, 40),
    rank=st.integers(1, 17),
    share=st.sampled_from(["heads", "layers", "none"]),
    seed=st.integers(0, 2**31),
)
def test_equals_the_formula(length: int, missing: int, rank: int, share: str, seed: int) -> None:
    torch.manual_seed(seed)
    kernel = Linformer(rank, 43, share=share)
    kernel.fit(3, "encoder.0.self")
    q, k, v = random_qkv(2, 3, length, length)
    lengths = torch.tensor([length, max(0, length - missing)])
    out = kernel(q, k, v, mask=padding(lengths.tolist(), length))
    expected = by_hand(kernel, q, k, v, torch.arange(length) < lengths[:, None])
    torch.testing.assert_close(out, expected, atol=1e-5, rtol=1e-5)
    assert_same_gradients(out, expected, (q, k, v, *kernel.parameters()))


def test_identity_projections_are_full_attention() -> None:
    kernel = Linformer(31, 31)
    with torch.no_grad():
        kernel.of_keys.copy_(torch.eye(31))
        kernel.of_values.copy_(torch.eye(31))
    q, k, v = random_qkv(2, 3, 31, 31)
    expected = attend(q, k, v)
    torch.testing.assert_close(kernel(q, k, v), expected, atol=1e-5, rtol=1e-5)
    out, weights = kernel.show(q, k, v)
    torch.testing.assert_close(out, expected, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(weights, attend_readable(q, k, v)[1], atol=1e-5, rtol=1e-5)
    assert_same_gradients(kernel(q, k, v), expected, (q, k, v))


def test_padding_and_neighbours_change_nothing() -> None:
    kernel = Linformer(5, 50)
    q, k, v = random_qkv(2, 3, 40, 40)
    together = kernel(q, k, v, mask=padding([40, 23], 40))[1:, :, :23]
    torch.testing.assert_close(together, kernel(*(x[1:, :, :23] for x in (q, k, v))), atol=1e-6, rtol=1e-5)


def test_who_shares_what() -> None:
    sizes = {}
    for share in ("heads", "layers", "none"):
        layers = nn.ModuleList(
            MultiHead(12, 3, site=reading(i), kernel=Linformer(4, 10, share=share)) for i in range(2)
        )
        tie([layer.kernel for layer in layers])  # type: ignore[misc]
        sizes[share] = sum(p.numel() for name, p in layers.named_parameters() if "kernel" in name)
    assert sizes == {"heads": 2 * 2 * 40, "layers": 40, "none": 2 * 2 * 3 * 40}


def test_what_it_cannot_do_is_said_with_the_numbers() -> None:
    with pytest.raises(UsageError, match=r"rank \(11\).*max_length \(10\)"):
        Linformer(11, 10)
    kernel = Linformer(3, 10)
    with pytest.raises(DataError, match="11 tokens is longer than the 10"):
        kernel(*random_qkv(1, 3, 11, 11))
    with pytest.raises(UsageError, match="cannot be causal"):
        kernel(*random_qkv(1, 3, 7, 7), causal=True)
    with pytest.raises(UsageError, match="positions"):
        kernel(*random_qkv(1, 3, 7, 7), bias=torch.zeros(1))
    with pytest.raises(UsageError, match="1x1x7x7"):
        kernel(*random_qkv(1, 3, 7, 7), mask=torch.ones(1, 1, 7, 7, dtype=torch.bool))


def test_memory_grows_with_the_length_and_not_with_its_square() -> None:
    largest = []
    for length in (2048, 8192):
        q, k, v = random_qkv(1, 1, length, length, width=4)
        with Largest() as seen:
            Linformer(8, 8192)(q, k, v).sum().backward()
        largest.append(seen.numbers)
    assert largest[1] <= 4 * largest[0]
    assert largest[1] < 2**18
