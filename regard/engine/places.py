"""What the engine is told about places: vectors that are added to embeddings, or the angles of a rotation.

Before this file: `regard.attention.absolute`; after it: `engine.py` and `decoder.py`, which hand it in.
"""

import threading

import torch
from torch import Tensor

from regard.attention.absolute import sinusoids
from regard.attention.order import Positions
from regard.engine.weights import word_of


class Places:
    """A table that grows; from any thread."""

    def __init__(self, positions: Positions, d_model: int, planes: int) -> None:
        """`planes` of a head are turned by rotary positions; 0: vectors are added."""
        self._positions, self._width, self._planes = positions, d_model, planes
        self._table: Tensor | None = None  # (length, D), or (length, K) with rotary
        self._lock = threading.Lock()

    def table(self, length: int) -> Tensor | None:
        """At least so many places, where the scheme has any; one with an end says itself that it is over."""
        if word_of(self._positions) == "nothing" and not self._planes:
            return None
        most = self._positions.max_length
        with self._lock, torch.inference_mode():
            if self._table is None or len(self._table) < length:
                length = max(256, 2 * length) if most is None else max(most, length)
                if self._planes:
                    self._table = sinusoids(length, 2 * self._planes)
                else:
                    nothing = torch.zeros(1, length, self._width)
                    self._table = self._positions.embed(nothing)[0].contiguous()
            return self._table
