"""Masks against the sentence that defines them."""

import torch

from regard.attention.masks import causal_mask, join, padding_mask


def test_causal_mask_hides_exactly_the_future() -> None:
    mask = causal_mask(5, 7)
    for query in range(5):
        for key in range(7):
            assert bool(mask[query, key]) == (key <= query + 2)


def test_padding_mask_has_room_for_heads_and_queries() -> None:
    real = torch.tensor([[True, True, False], [True, False, False]])
    assert padding_mask(real).shape == (2, 1, 1, 3)
    assert torch.equal(padding_mask(real)[:, 0, 0], real)


def test_join_allows_what_all_allow() -> None:
    a, b = torch.tensor([True, True, False]), torch.tensor([True, False, True])
    joined = join(a, None, b)
    assert joined is not None
    assert joined.tolist() == [True, False, False]
    assert join(None, None) is None
