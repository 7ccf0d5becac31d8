"""Whole weights of rows: they get to their owners and back as torch cuts them, whatever their shapes."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any, TypeVar

import hypothesis.strategies as st
import pytest
import torch
from hypothesis import given
from torch import Tensor

from regard.errors import UsageError
from regard.fused.clip import norms
from regard.training.several import Several
from regard.training.sums import Node
from regard.training.wholes import Holders, Wholes

R = TypeVar("R")


class Threads(Several):
    """A process that is a thread, and finds what the others have sent in one list."""

    def __init__(self, rank: int, size: int, box: list[Any], barrier: Barrier) -> None:
        super().__init__(rank, size, rank)
        self.box, self.barrier = box, barrier

    def _every(self, mine: Any) -> list[Any]:
        self.box[self.rank] = mine
        self.barrier.wait(60)
        found = list(self.box)
        self.barrier.wait(60)
        return found

    def numbers(self, *values: float) -> list[list[float]]:
        return self._every(list(values))

    def exchanged(self, sent: Sequence[Tensor], lengths: Sequence[int]) -> list[Tensor]:
        found = [each[self.rank] for each in self._every(sent)]
        assert [len(each) for each in found] == list(lengths)
        return found

    def gathered(self, mine: Tensor, lengths: Sequence[int], kind: torch.dtype | None = None) -> list[Tensor]:
        assert len(mine) == lengths[self.rank]
        return self._every(mine)


def in_each(size: int, work: Callable[[Threads], R]) -> list[R]:
    """What `work` gives in each of so many."""
    box: list[Any] = [None] * size
    barrier = Barrier(size)
    with ThreadPoolExecutor(size) as pool:
        return list(pool.map(lambda rank: work(Threads(rank, size, box, barrier)), range(size)))


def rows_of(whole: Tensor, size: int, rank: int) -> Tensor:
    """As `fully_shard` cuts: torch.chunk, and nothing where there are fewer chunks."""
    chunks = whole.chunk(size)
    return chunks[rank] if rank < len(chunks) else whole[:0]


shapes = st.lists(
    st.lists(st.integers(1, 7), min_size=1, max_size=3).map(torch.Size), min_size=5, max_size=12
)


@given(shapes, st.integers(2, 5))
def test_to_their_owners_and_back(sizes: list[torch.Size], size: int) -> None:
    weights = [torch.randn(shape) for shape in sizes]

    def both_ways(world: Threads) -> tuple[list[int], list[Tensor], list[Tensor]]:
        wholes = Wholes(sizes, [[0, 2]], world, weights[0])
        rows = {place: rows_of(weight, size, world.rank) for place, weight in enumerate(weights)}
        found = wholes.gathered(rows)
        assert list(found) == wholes.mine
        for place, whole in found.items():
            assert torch.equal(whole, weights[place])
        back = wholes.scattered([found[place] for place in wholes.mine])
        assert all(torch.equal(back[place], each) for place, each in rows.items())
        return wholes.mine, list(back.values()), wholes.everywhere(list(found.values()))

    every = in_each(size, both_ways)
    assert sorted(place for mine, _, _ in every for place in mine) == list(range(len(sizes)))
    assert any({0, 2} <= set(mine) for mine, _, _ in every)
    for _, _, whole in every:
        assert all(torch.equal(one, other) for one, other in zip(whole, weights, strict=True))


def test_each_owns_its_share_of_the_numbers() -> None:
    sizes = [torch.Size([31, 8])] * 7 + [torch.Size([5])] * 9
    for size in (2, 3, 5):
        wholes = Wholes(sizes, [], Several(0, size, 0), torch.zeros(1))
        owned = [sum(sizes[place].numel() for place in some) for some in wholes.owned]
        assert max(owned) - min(owned) <= 31 * 8


def test_gradients_losses_and_norms_are_those_of_one_process() -> None:
    weights = [torch.nn.Parameter(torch.randn(shape)) for shape in ((7, 3), (5,), (2, 3), (11,), (3, 5))]
    gradients = {place: torch.randn(weights[place].shape) for place in (0, 1, 2, 4)}  # 3 was never needed

    def found(world: Threads) -> tuple[dict[int, Tensor], float, Tensor]:
        wholes = Wholes([weight.shape for weight in weights], [], world, weights[0].detach())
        own = [torch.nn.Parameter(weights[place].detach().clone()) for place in wholes.mine]
        rows = [rows_of(weight.detach(), 2, world.rank).clone() for weight in weights]
        holders, nodes = Holders(own, rows, wholes), list[Node]()
        for leaf in (world.rank, 2 + world.rank):  # batches 0 to 2; the last is computed twice
            brought = [
                rows_of(gradients[place], 2, world.rank) if place in gradients else None
                for place in range(len(weights))
            ]
            holders.take(nodes, leaf, brought, torch.tensor([10.0 ** min(leaf, 2)]))
        *summed, loss = holders.summed(nodes, 3, torch.device("cpu"))
        assert loss is not None
        for weight, gradient in zip(own, summed, strict=True):
            weight.grad = gradient
        norm = holders.norm()
        with torch.no_grad():
            for weight in own:
                weight.add_(1)
        holders.hand_round()
        for row, weight in zip(rows, weights, strict=True):
            assert torch.equal(row, rows_of(weight.detach() + 1, 2, world.rank))
        given = {place: each for place, each in zip(wholes.mine, summed, strict=True) if each is not None}
        return given, float(loss), norm

    every = in_each(2, found)
    wanted = torch.linalg.vector_norm(norms(list(gradients.values())))  # as one process has it
    torch.testing.assert_close(wanted, torch.nn.utils.get_total_norm(list(gradients.values())))
    for _, loss, norm in every:
        assert loss == 111.0
        assert torch.equal(norm, wanted)
    brought = every[0][0] | every[1][0]
    assert sorted(brought) == [0, 1, 2, 4]
    assert all(torch.equal(each, gradients[place]) for place, each in brought.items())


def test_more_processes_than_weights_are_refused() -> None:
    from regard.training.shards import Shards

    model = torch.nn.Linear(3, 2)
    with pytest.raises(UsageError, match="cannot cut 2 weights for 3 processes"):
        Shards(model, list(model.parameters()), [], Several(0, 3, 0))
