"""Sums in a tree: any cut into neighbouring shares gives the bits of one process."""

import hypothesis.strategies as st
import torch
from hypothesis import given

from regard.training.several import Several
from regard.training.sums import Node, Values, fold, push, spans


def leaf(number: int) -> Values:
    """Numbers whose sum depends on its order; of some leaves one part is missing."""
    drawn = torch.randn(7, generator=torch.Generator().manual_seed(number)) * 10.0 ** (number % 9)
    return [drawn[:5].clone(), None if number % 3 == 1 else drawn[5:].clone(), None]


def written(values: Values) -> list[list[float]]:
    return [[] if value is None else value.tolist() for value in values]


@given(st.integers(1, 41), st.integers(1, 9))
def test_any_number_of_processes_sums_to_the_same_bits(count: int, size: int) -> None:
    alone: list[Node] = []
    for number in range(count):
        push(alone, Node(number, 1, leaf(number)))
    shares = []
    for rank in range(size):
        mine: list[Node] = []
        share = Several(rank, size, rank).share(count)
        for number in share:
            push(mine, Node(number, 1, leaf(number)))
        assert [(node.start, node.size) for node in mine] == spans(share.start, share.stop)
        shares += mine
    assert [node.start for node in shares] == sorted({node.start for node in shares})
    assert sum(node.size for node in shares) == count
    assert written(fold(shares)) == written(fold(alone))


@given(st.integers(0, 41), st.integers(1, 9))
def test_shares_are_neighbouring_and_even_and_the_first_has_one(count: int, size: int) -> None:
    shares = [list(Several(rank, size, rank).share(count)) for rank in range(size)]
    assert [number for share in shares for number in share] == list(range(count))
    assert max(map(len, shares)) - min(map(len, shares)) <= 1
    assert len(shares[0]) == max(map(len, shares))


def test_the_sum_is_that_of_a_naive_loop() -> None:
    nodes: list[Node] = []
    for number in range(13):
        push(nodes, Node(number, 1, [torch.full((3,), float(number))]))
    assert written(fold(nodes)) == [[78.0] * 3]
