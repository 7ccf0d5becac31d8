"""The base kernel is full attention, and a kernel that keeps less has a cache that stays short."""

import torch

from regard.attention.attend import attend
from regard.attention.cache import KeyValue
from regard.attention.kernel import build_kernel
from regard.attention.site import reading
from regard.config import AttentionConfig


def test_the_full_kernel_is_attend() -> None:
    q, k, v = torch.randn(2, 3, 5, 11), torch.randn(2, 3, 7, 11), torch.randn(2, 3, 7, 11)
    kernel = build_kernel(AttentionConfig(), reading(0))
    torch.testing.assert_close(kernel(q, k, v), attend(q, k, v))
    out, weights = kernel.show(q, k, v)
    torch.testing.assert_close(out, attend(q, k, v))
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 3, 5))


def test_a_cache_keeps_the_last_places_and_knows_where_they_are() -> None:
    held = KeyValue(torch.zeros(2, 3, 0, 11), torch.zeros(2, 3, 0, 11))
    for place in range(7):
        new = torch.full((2, 3, 1, 11), float(place))
        held = held.append(KeyValue(new, new), keep=3)
    assert (held.start, held.length, held.end) == (4, 3, 7)
    assert held.k[0, 0, :, 0].tolist() == [4, 5, 6]
    assert held.select(torch.tensor([1])).start == 4
