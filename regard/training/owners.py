"""Who moves which matrix, where several processes train one model with Muon.

Making a matrix orthogonal is work that grows with its width, so each matrix has an owner: its gradients are
summed there alone, it is moved there, and then goes round: the bytes of a gradient that goes round. What Adam
moves is summed for all and moved by all. Pieces of matrices that move together are the optimiser's own
(`Muon.pieces`), whoever owns them: so the bits are those of one process. Between `step.py` and `world.py`.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import Tensor

from regard.fused import clip
from regard.training.optimizer import Muon
from regard.training.sums import Node, Values, fold, push
from regard.training.world import T, World


class Owners:
    """The weights of a group: which process sums, moves and remembers each."""

    def __init__(
        self,
        weights: Sequence[Tensor],
        movers: Sequence[torch.optim.Optimizer],
        world: World,
        kind: torch.dtype = torch.float32,
    ) -> None:
        """`kind`: in which gradients travel."""
        self.weights, self.world, self.kind = list(weights), world, kind
        self.muons = [mover for mover in movers if isinstance(mover, Muon)] if world.size > 1 else []
        self.owned = dealt([piece for muon in self.muons for piece in muon.pieces()], world.size, _work)
        self.owner = {id(each): rank for rank, some in enumerate(self.owned) for each in some}
        self.place = {id(weight): place for place, weight in enumerate(self.weights)}
        self.rest = [weight for weight in self.weights if id(weight) not in self.owner]
        self.sizes = [sum(each.numel() for each in some) for some in self.owned]
        self.length = sum(each.numel() for each in self.rest) + len(self.weights) + 1
        self.chunk = math.ceil(self.length / world.size)
        self.there: list[bool] = []  # which weights have a gradient anywhere, since the last sum

    @property
    def mine(self) -> list[Tensor]:
        """The matrices that this process owns."""
        return self.owned[self.world.rank]

    def take(self, nodes: list[Node], leaf: int, gradients: Values, loss: Tensor) -> None:
        """Put what a batch has given to the nodes of this process."""
        push(nodes, Node(leaf, 1, [*gradients, loss]))

    def summed(self, nodes: Sequence[Node], count: int, device: torch.device) -> Values:
        """Gradients and loss over all `count` batches of a step, of the nodes that this process has.

        None where no batch gave a weight any, and for the matrices of others.
        """
        if self.world.size == 1:
            return fold(nodes)
        rows = [Node(node.start, node.size, [self._row(node.values)]) for node in nodes]
        lengths = [size + self.chunk for size in self.sizes]
        found = self.world.scattered(rows, count, lengths, device, self.kind)
        *own, chunk = torch.split(found, [*(each.numel() for each in self.mine), self.chunk])
        rest = torch.cat(self.world.gathered(chunk, [self.chunk] * self.world.size, self.kind))
        sizes = [each.numel() for each in self.rest]
        *shared, there, loss = torch.split(rest[: self.length], [*sizes, len(self.weights), 1])
        self.there = [bool(each) for each in there]
        if self.kind != torch.float32:  # what is told to people is not rounded
            own_loss = sum(float(node.values[-1]) for node in nodes if node.values[-1] is not None)
            loss = loss.new_tensor([sum(each for (each,) in self.world.numbers(own_loss))])
        values: Values = [None] * len(self.weights)
        for weight, part in zip((*self.mine, *self.rest), (*own, *shared), strict=True):
            place = self.place[id(weight)]
            values[place] = part.view_as(weight) if self.there[place] else None
        return [*values, loss]

    def _row(self, values: Values) -> Tensor:
        """One row: for each process its matrices, and a chunk of all else with the loss at its end."""
        *gradients, loss = values
        assert loss is not None
        there = torch.tensor([float(each is not None) for each in gradients], device=loss.device)
        rest = torch.cat([*(self._flat(each, gradients) for each in self.rest), there, loss])
        chunks = torch.nn.functional.pad(rest, (0, self.chunk * self.world.size - self.length))
        parts = zip(self.owned, torch.split(chunks, self.chunk), strict=True)
        return torch.cat([row for some, chunk in parts for row in (*self._rows(some, gradients), chunk)])

    def _rows(self, some: Sequence[Tensor], gradients: Values) -> list[Tensor]:
        return [self._flat(each, gradients) for each in some]

    def _flat(self, weight: Tensor, gradients: Values) -> Tensor:
        gradient = gradients[self.place[id(weight)]]
        return (torch.zeros_like(weight) if gradient is None else gradient).reshape(-1)

    def norm(self) -> Tensor:
        """The norm of all gradients, wherever they are, as torch has it: of the norms of each."""
        held = [place for place, each in enumerate(self.weights) if each.grad is not None]
        found = clip.norms([each.grad for each in self.weights if each.grad is not None])
        if not self.muons:
            whole: Tensor = torch.linalg.vector_norm(found)
            return whole
        mine = [0.0] * len(self.weights)
        for place, norm in zip(held, found.tolist(), strict=True):
            mine[place] = norm
        every = self.world.numbers(*mine)
        rows = [
            every[self.owner.get(id(weight), self.world.rank)][place]
            for place, weight in enumerate(self.weights)
            if self.there[place]
        ]
        total: Tensor = torch.linalg.vector_norm(torch.tensor(rows, dtype=torch.float32))
        return total

    def clip(self, norm: float, most: float) -> None:
        """Cut the gradients short, where all of them together are longer than that."""
        clip.clip([each.grad for each in self.weights if each.grad is not None], norm, most)

    @torch.no_grad()
    def hand_round(self) -> None:
        """The matrices as their owners have moved them, in every process."""
        if not self.owner:
            return
        own = torch.cat([each.detach().reshape(-1) for each in self.mine] or [self.weights[0].new_zeros(0)])
        for rank, rows in enumerate(self.world.gathered(own, self.sizes)):
            if rank != self.world.rank:
                parts = torch.split(rows, [each.numel() for each in self.owned[rank]])
                for weight, part in zip(self.owned[rank], parts, strict=True):
                    weight.copy_(part.view_as(weight))

    @contextmanager
    def whole(self) -> Iterator[None]:
        """Inside the block every process has the momentum of all matrices; after it that of its own."""
        for muon in self.muons:
            self._gather(muon)
        yield
        self.forget()

    def forget(self) -> None:
        """Drop the momentum of matrices that others move."""
        for muon in self.muons:
            for weight in [each for each in muon.state if self.owner[id(each)] != self.world.rank]:
                del muon.state[weight]

    @torch.no_grad()
    def _gather(self, muon: Muon) -> None:
        """A matrix that never had a gradient has none, and keeps none."""
        held = {id(each) for group in muon.param_groups for each in group["params"]}
        owned = [[each for each in some if id(each) in held] for some in self.owned]
        rows = [
            torch.cat([muon.momentum(each).reshape(-1), each.new_ones(1)])
            if "momentum" in muon.state.get(each, {})
            else each.new_zeros(each.numel() + 1)
            for each in owned[self.world.rank]
        ]
        sizes = [sum(each.numel() + 1 for each in some) for some in owned]
        own = torch.cat(rows or [self.weights[0].new_zeros(0)])
        for some, found in zip(owned, self.world.gathered(own, sizes), strict=True):
            for weight, part in zip(
                some, torch.split(found, [each.numel() + 1 for each in some]), strict=True
            ):
                if part[-1]:
                    muon.momentum(weight).copy_(part[:-1].view_as(weight))


def dealt(pieces: Sequence[Sequence[T]], size: int, work: Callable[[Sequence[T]], int]) -> list[list[T]]:
    """The pieces dealt out, the heaviest first, each to whom has least to do."""
    owned: list[list[T]] = [[] for _ in range(size)]
    loads = [0] * size
    for piece in sorted(pieces, key=work, reverse=True):
        least = loads.index(min(loads))
        loads[least] += work(piece)
        owned[least] += piece
    return owned


def _work(piece: Sequence[Tensor]) -> int:
    """What making its matrices orthogonal costs, as far as it differs between pieces."""
    return sum(each.numel() * min(each.shape) for each in piece)
