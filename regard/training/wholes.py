"""Whole weights of shards: each has an owner, which alone moves it and remembers what moving takes.

    process r holds rows r c to (r + 1) c of a weight of R rows, c = ceil(R / n)        as FSDP2 cuts them

Gradients of rows go to the owner, rows of what it has moved go back: 1/n of the bytes of a gradient that goes
round. A vector unit treats the end of a tensor otherwise than its middle, so a weight that was moved in rows
would not be bit for bit what one process gives. Before this: `shards.py`, which cuts; after it: `step.py`.
"""

from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor, nn

from regard.fused import clip
from regard.training.owners import Owners, dealt
from regard.training.sums import Node, Values, fold, push
from regard.training.world import World


class Wholes:
    """Weights by their place in a list: whose each is, and how they get there and back."""

    def __init__(
        self, shapes: Sequence[torch.Size], together: Sequence[Sequence[int]], world: World, like: Tensor
    ) -> None:
        """`together`: the places that one process must have; `like`, a tensor of their kind and device."""
        self.shapes, self.world, self._none = list(shapes), world, like.new_empty(0)
        rest = set(range(len(shapes))).difference(*together)
        pieces = [*together, *([place] for place in sorted(rest))]
        owned = dealt(pieces, world.size, lambda piece: sum(shapes[place].numel() for place in piece))
        self.owned = [sorted(some) for some in owned]

    @property
    def mine(self) -> list[int]:
        """The places of the weights that this process owns."""
        return self.owned[self.world.rank]

    def span(self, place: int, rank: int) -> slice:
        """The numbers of a weight that a process holds, of all of them in a row."""
        rows, inner = self.shapes[place][0], self.shapes[place][1:].numel()
        chunk = -(-rows // self.world.size)
        return slice(min(rank * chunk, rows) * inner, min((rank + 1) * chunk, rows) * inner)

    def _lengths(self, places: Iterable[int], rank: int) -> list[int]:
        spans = (self.span(place, rank) for place in places)
        return [int(span.stop - span.start) for span in spans]

    def gathered(self, shards: Mapping[int, Tensor]) -> dict[int, Tensor]:
        """The whole tensors of this process, of shards of the same places that everybody has."""
        every = [[place for place in some if place in shards] for some in self.owned]
        mine = every[self.world.rank]
        sent = [self._row([shards[place] for place in some]) for some in every]
        lengths = [self._lengths(mine, rank) for rank in range(self.world.size)]
        came = self.world.exchanged(sent, [sum(each) for each in lengths])
        parts = [torch.split(row, each) for row, each in zip(came, lengths, strict=True)]
        return {
            place: torch.cat([row[number] for row in parts]).view(self.shapes[place])
            for number, place in enumerate(mine)
        }

    def scattered(self, wholes: Sequence[Tensor]) -> dict[int, Tensor]:
        """This process's shards of all weights, of the whole ones that each process has."""
        flat = {place: whole.detach().reshape(-1) for place, whole in zip(self.mine, wholes, strict=True)}
        ranks, me = range(self.world.size), self.world.rank
        sent = [self._row([each[self.span(place, rank)] for place, each in flat.items()]) for rank in ranks]
        lengths = [self._lengths(some, me) for some in self.owned]
        came = self.world.exchanged(sent, [sum(each) for each in lengths])
        return {
            place: part.view(-1, *self.shapes[place][1:])
            for some, row, each in zip(self.owned, came, lengths, strict=True)
            for place, part in zip(some, torch.split(row, each), strict=True)
        }

    def everywhere(self, wholes: Sequence[Tensor]) -> list[Tensor]:
        """All whole tensors in every process, in order."""
        sizes = [[self.shapes[place].numel() for place in some] for some in self.owned]
        rows = self.world.gathered(
            self._row([whole.detach() for whole in wholes]), [sum(each) for each in sizes]
        )
        found = {
            place: part.view(self.shapes[place])
            for some, row, each in zip(self.owned, rows, sizes, strict=True)
            for place, part in zip(some, torch.split(row, each), strict=True)
        }
        return [found[place] for place in range(len(self.shapes))]

    def _row(self, parts: Sequence[Tensor]) -> Tensor:
        return torch.cat([part.reshape(-1) for part in parts] or [self._none])


class Holders(Owners):
    """Owners where every weight is cut; FSDP has brought the gradients of the rows that a process holds."""

    def __init__(self, weights: Sequence[nn.Parameter], rows: Sequence[Tensor], wholes: Wholes) -> None:
        """`weights` are those that this process owns, `rows` what it holds of all."""
        super().__init__(weights, [], wholes.world)
        self.wholes, self.rows = wholes, rows
        self.brought: Values = []  # the gradients of the last round

    def take(self, nodes: list[Node], leaf: int, gradients: Values, loss: Tensor) -> None:
        """The loss alone; gradients were summed on their way, and are whole with the last round's."""
        nodes.append(Node(leaf, 1, [loss]))
        self.brought = gradients

    def summed(self, nodes: Sequence[Node], count: int, device: torch.device) -> Values:
        losses = [float(node.values[0]) for node in nodes if node.values[0] is not None]
        every, joined = self.world.numbers(*losses), list[Node]()
        for leaf in range(count):
            loss = torch.tensor([every[leaf % self.world.size][leaf // self.world.size]], device=device)
            push(joined, Node(leaf, 1, [loss]))
        there = {place: each for place, each in enumerate(self.brought) if each is not None}
        self.there, self.brought = [place in there for place in range(len(self.rows))], []
        whole = self.wholes.gathered(there)
        return [*(whole.get(place) for place in self.wholes.mine), *fold(joined)]

    def norm(self) -> Tensor:
        """The norm of all gradients, wherever they are, as torch has it: of the norms of each."""
        own = zip(self.wholes.mine, self.weights, strict=True)
        held = {place: each.grad for place, each in own if each.grad is not None}
        norms = dict(zip(held, clip.norms(list(held.values())).tolist(), strict=True))
        every = self.world.numbers(*(norms.get(place, 0.0) for place in range(len(self.rows))))
        owner = {place: rank for rank, some in enumerate(self.wholes.owned) for place in some}
        found = [every[owner[place]][place] for place, there in enumerate(self.there) if there]
        total: Tensor = torch.linalg.vector_norm(torch.tensor(found, dtype=torch.float32))
        return total

    @torch.no_grad()
    def hand_round(self) -> None:
        """The rows of weights as their owners have moved them."""
        for place, rows in self.wholes.scattered(self.weights).items():
            self.rows[place].copy_(rows)
