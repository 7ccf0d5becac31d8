"""Paths through a lattice against all paths there are."""

from itertools import product

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from regard.decoding.lattice import Costs, align, bounded, collapse, extended
from regard.errors import DataError

BLANK = 0
seeds = st.integers(0, 10_000)


def noise(seed: int, *shape: int) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).double().log_softmax(-1)


def price(path: tuple[int, ...], costs: Costs, blank: int | None) -> int:
    ids = list(path) if blank is None else collapse(path, blank)
    return sum(int(costs.each[i]) for i in ids) - (
        int(costs.less[ids[0]]) if ids and costs.less is not None else 0
    )


def by_force(logp: torch.Tensor, costs: Costs, blank: int | None) -> float | None:
    """The best of all paths that keep to their costs."""
    rows = logp.tolist()
    totals = [
        sum(row[label] for row, label in zip(rows, path, strict=True))
        for path in product(range(logp.shape[1]), repeat=len(logp))
        if (
            price(path, costs, blank) == costs.most
            if costs.exact
            else price(path, costs, blank) <= costs.most
        )
    ]
    best = max(totals, default=float("-inf"))
    return None if best == float("-inf") else best


@given(
    seeds,
    st.integers(1, 5),
    st.integers(2, 4),
    st.integers(0, 7),
    st.booleans(),
    st.booleans(),
    st.booleans(),
)
def test_the_best_path_within_its_costs_is_that_of_all_paths(
    seed: int, places: int, labels: int, most: int, exact: bool, silent: bool, leading: bool
) -> None:
    logp = noise(seed, places, labels)
    logp[torch.rand(places, labels, generator=torch.Generator().manual_seed(seed)) < 0.1] = float("-inf")
    each = torch.tensor([0, 1, 2, 3])[:labels]
    each = each if silent else each + 1
    less = (torch.arange(labels) % 2) * each.clamp(max=1) if leading else None
    costs, blank = Costs(each, most, exact=exact, less=less), BLANK if silent else None
    found, wanted = bounded(logp, costs, blank=blank), by_force(logp, costs, blank)
    if wanted is None:
        assert found is None
        return
    assert found is not None
    path, total = found
    assert total == pytest.approx(wanted)
    assert total == pytest.approx(sum(float(row[label]) for row, label in zip(logp, path, strict=True)))
    spent = price(tuple(path), costs, blank)
    assert spent == most if exact else spent <= most


@given(seeds, st.integers(1, 3), st.integers(0, 2))
def test_the_best_alignment_is_that_of_all_paths(seed: int, length: int, spare: int) -> None:
    targets = torch.randint(1, 3, (1, length), generator=torch.Generator().manual_seed(seed))
    repeats = sum(a == b for a, b in zip(targets[0].tolist(), targets[0].tolist()[1:], strict=False))
    places = length + repeats + spare
    logp = noise(seed, places, 3)
    labels = extended(targets, BLANK)
    said = logp[None].gather(2, labels[:, None].expand(-1, places, -1))
    states = align(said, labels, torch.tensor([places]), torch.tensor([length]))
    path = labels.gather(1, states)[0].tolist()
    assert collapse(path, BLANK) == targets[0].tolist()
    best = max(
        sum(float(row[label]) for row, label in zip(logp, every, strict=True))
        for every in product(range(3), repeat=places)
        if collapse(every, BLANK) == targets[0].tolist()
    )
    assert sum(float(row[label]) for row, label in zip(logp, path, strict=True)) == pytest.approx(best)


def test_neighbours_in_a_batch_change_no_alignment() -> None:
    targets = torch.tensor([[1, 2, 2], [2, 1, 0]])
    lengths, places = torch.tensor([3, 2]), torch.tensor([7, 5])
    labels = extended(targets, BLANK)
    said = noise(3, 2, 7, 3).gather(2, labels[:, None].expand(-1, 7, -1))
    both = align(said, labels, places, lengths)
    alone = align(said[1:, :5, :5], labels[1:, :5], places[1:], lengths[1:])
    assert torch.equal(both[1, :5], alone[0])


def test_a_table_that_nobody_has_memory_for_is_refused() -> None:
    with pytest.raises(DataError, match="make a table of 2,500,025,000 cells"):
        bounded(torch.zeros(25, 1000), Costs(torch.ones(1000).long(), 100_000), blank=0)
