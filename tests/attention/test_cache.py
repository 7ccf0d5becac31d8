"""A cache is a value: appending and selecting make new ones."""

import torch

from regard.attention import KeyValue


def test_append_and_select_leave_the_old_one_alone() -> None:
    old = KeyValue(torch.randn(3, 2, 4, 5), torch.randn(3, 2, 4, 5))
    before = old.k.clone()
    longer = old.append(KeyValue(torch.randn(3, 2, 1, 5), torch.randn(3, 2, 1, 5)))
    assert (old.length, longer.length) == (4, 5)
    picked = longer.select(torch.tensor([2, 2, 0]))
    assert torch.equal(picked.k[0], picked.k[1])
    assert torch.equal(picked.v[2], longer.v[0])
    assert torch.equal(old.k, before)
