"""Structural positions: where a word stands in the sentence's dependency tree (Wang et al. 2019).

    absolute  x_i += tanh(W [p_i ; p_depth(i)])        p are the sinusoids of `absolute.py`
    relative  depth_i - depth_j                        where one is above the other on a path from the root
              sign(i - j) (depth_i + depth_j)          elsewhere; its vectors as in `relative.py`

The trees come from parses beside the source text (`regard/data/parses.py`) and are a field of the inputs;
only the encoder reads them. Used by `heads.py` and the Transformer, which hands them in as `places`.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from regard.attention.absolute import sinusoids, sinusoids_at
from regard.attention.linear import Linear
from regard.attention.order import Positions
from regard.attention.relative import Relative
from regard.errors import DataError


@dataclass(frozen=True)
class Trees:
    """The trees of a batch: depth (B, S), and the signed distance of each two places, (B, S, S)."""

    depth: Tensor
    distance: Tensor

    @classmethod
    def of(cls, heads: Tensor) -> "Trees":
        """The trees of heads (B, S): the place where the head of each token's word begins.

        A token that goes on with the word before it has its own place as its head. The end token is the
        root above the words without a head, so theirs is its place, and its own is past the tree: S or
        more, as that of padding.

        >>> Trees.of(torch.tensor([[1, 3, 2, 4]])).depth.tolist()  # three tokens, the last two one word
        [[2, 1, 1, 0]]
        """
        batch, size = heads.shape
        place = torch.arange(size, device=heads.device).expand(batch, -1)
        node = torch.where(heads == place, 0, place).cummax(1).values  # (B, S): where its word begins
        over = torch.cat([heads.clamp(max=size), heads.new_full((batch, 1), size)], 1)  # (B, S + 1)
        above = torch.zeros(batch, size, size + 1, dtype=torch.bool, device=heads.device)
        depth, up = torch.zeros_like(heads) - 1, node
        while bool((up < size).any()):
            depth += up < size
            if bool((depth > size).any()):
                raise DataError("the heads of a sentence make no tree: a word never reaches the root")
            above.scatter_(2, up[..., None], True)  # (B, S, S + 1): which words are on its way to the root
            up = over.gather(1, up)
        path = above.gather(2, node[:, None].expand(-1, size, -1))  # (B, S, S): is j's word above i's
        path = path | path.transpose(1, 2)
        down, side = depth[..., None] - depth[:, None], depth[..., None] + depth[:, None]
        return cls(depth, torch.where(path, down, (place[..., None] - place[:, None]).sign() * side))


def needed(trees: Trees | None) -> Trees:
    """The trees, which a model with structural positions cannot do without."""
    if trees is None:
        raise DataError(
            "this model reads dependency trees (positions.kind=structural); give the parses of its source "
            "text with --parses F.conllu"
        )
    return trees


class Depth(Positions):
    """The absolute part: what place and depth say together is added to the source's embeddings."""

    reads_trees = True

    def __init__(self, width: int) -> None:
        super().__init__()
        self.fuse = Linear(2 * width, width)

    def embed(self, x: Tensor, offset: int | Tensor = 0, places: Trees | None = None) -> Tensor:
        depth = needed(places).depth
        place = sinusoids(x.shape[1], x.shape[2]).to(x).expand_as(x)
        both = torch.cat([place, sinusoids_at(depth, x.shape[2]).to(x)], -1)  # (B, S, 2D)
        out: Tensor = x + self.fuse(both).tanh()
        return out


class Structural(Relative):
    """The relative part: a vector for each distance in the tree, clipped, on keys and values."""

    reads_trees = True

    def bias(self, q: Tensor, keys: int, offset: int = 0, places: Trees | None = None) -> Tensor:
        by_distance = torch.matmul(q * self.scale, self.key_embedding.mT)  # (B, H, T, 2c + 1)
        return by_distance.gather(-1, self._index(needed(places), q.shape[1]))

    def gather(self, weights: Tensor, offset: int = 0, places: Trees | None = None) -> Tensor:
        by_distance = weights.new_zeros(*weights.shape[:3], 2 * self.clip + 1)
        by_distance = by_distance.scatter_add(-1, self._index(needed(places), weights.shape[1]), weights)
        return torch.matmul(by_distance, self.value_embedding)

    def _index(self, trees: Trees, heads: int) -> Tensor:
        """Which vector each pair has: (B, H, S, S)."""
        distance = trees.distance.clamp(-self.clip, self.clip) + self.clip
        return distance[:, None].expand(-1, heads, -1, -1)
