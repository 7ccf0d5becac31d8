"""Keys and values as a value: made once, handed from step to step, never kept on a module."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class KeyValue:
    """Keys and values of all heads, both (B, H, S, K), of the places from `start` on."""

    k: Tensor
    v: Tensor
    start: int = 0  # places before the first one held, which nobody looks at any more

    @property
    def length(self) -> int:
        """S, the number of places held."""
        return self.k.shape[-2]

    @property
    def end(self) -> int:
        """The place that comes next."""
        return self.start + self.length

    def append(self, new: "KeyValue", keep: int | None = None) -> "KeyValue":
        """These places followed by the new ones; of all, those that the `keep` of a new one reach."""
        k, v = torch.cat([self.k, new.k], -2), torch.cat([self.v, new.v], -2)
        drop = 0 if keep is None else max(0, k.shape[-2] - keep - new.length + 1)
        return KeyValue(k[..., drop:, :], v[..., drop:, :], self.start + drop)

    def first(self, count: int) -> "KeyValue":
        """The places before `count`; none that is held may have been let go of."""
        return KeyValue(
            self.k[..., : count - self.start, :], self.v[..., : count - self.start, :], self.start
        )

    def select(self, rows: Tensor) -> "KeyValue":
        """The given rows of the batch, in that order."""
        return KeyValue(self.k.index_select(0, rows), self.v.index_select(0, rows), self.start)
