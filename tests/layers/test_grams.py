"""Runs of tokens that speak for labels: against a plain loop, and what padding and dropout do."""

import torch

from regard.layers.grams import LONGEST, Grams


def spoken(grams: Grams, ids: list[int]) -> torch.Tensor:
    """One row by a plain loop over its runs."""
    rows = []
    for more in range(min(LONGEST, len(ids))):
        for start in range(len(ids) - more):
            mixed = 0
            for place in range(more + 1):
                mixed = (mixed * 2654435761 + ids[start + place] * 2246822519 + place) % 2**32
            rows.append((mixed >> 9) % len(grams.weight))
    return grams.scale * grams.weight[rows].sum(0) / len(rows) ** 0.5


def test_it_is_the_sum_over_runs_and_padding_says_nothing() -> None:
    torch.manual_seed(1)
    grams = Grams(53, 3).eval()
    torch.nn.init.normal_(grams.weight)
    rows = [[5, 7, 7, 9, 2], [7], [9, 5], [2, 2, 2, 2, 2, 2, 2]]
    longest = max(map(len, rows))
    ids = torch.tensor([row + [0] * (longest - len(row)) for row in rows])
    real = torch.tensor([[place < len(row) for place in range(longest)] for row in rows])
    wanted = torch.stack([spoken(grams, row) for row in rows])
    torch.testing.assert_close(grams(ids, real), wanted)
    torch.testing.assert_close(grams(ids + 3 * ~real, real), wanted)


def test_order_is_heard() -> None:
    torch.manual_seed(2)
    grams = Grams(997, 2).eval()
    torch.nn.init.normal_(grams.weight)
    ids = torch.tensor([[5, 7, 9], [9, 7, 5]])
    one, other = grams(ids, torch.ones_like(ids, dtype=torch.bool))
    assert (one - other).abs().max() > 1e-3


def test_it_begins_silent_and_learns_with_some_runs_left_out() -> None:
    torch.manual_seed(3)
    grams = Grams(97, 2, dropout=0.5)
    ids, real = torch.randint(0, 50, (7, 11)), torch.ones(7, 11, dtype=torch.bool)
    assert not grams(ids, real).any()
    torch.nn.init.normal_(grams.weight)
    assert not torch.equal(grams(ids, real), grams(ids, real))
    grams(ids, real).sum().backward()
    assert grams.weight.grad is not None
    assert 0 < int((grams.weight.grad != 0).any(1).sum()) < 97
