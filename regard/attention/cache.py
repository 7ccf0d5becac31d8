"""Keys and values as a value: made once, handed from step to step, never kept on a module."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class KeyValue:
    """Keys and values of all heads, both (B, H, S, K)."""

    k: Tensor
    v: Tensor

    @property
    def length(self) -> int:
        """S, the number of positions held."""
        return self.k.shape[-2]

    def append(self, new: "KeyValue") -> "KeyValue":
        """These positions followed by the new ones."""
        return KeyValue(torch.cat([self.k, new.k], -2), torch.cat([self.v, new.v], -2))

    def select(self, rows: Tensor) -> "KeyValue":
        """The given rows of the batch, in that order."""
        return KeyValue(self.k.index_select(0, rows), self.v.index_select(0, rows))
