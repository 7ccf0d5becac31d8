"""Ids to vectors and back: one matrix E (V, D) for source, target and output.

x = E[id] √D + position (Vaswani et al. 2017, 3.4); logits = h Eᵀ. Imported models may do without √D. Where a
table of bigrams is added, a place begins with what is known of its token and the one before it.
"""

import math
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.attention.dropout import dropout
from regard.attention.linear import gaussian
from regard.attention.positions import Positions
from regard.layers.residual import Norm


class Embedding(nn.Module):
    """Tied embeddings with positions and dropout."""

    matrices: ClassVar = {"weight": 0}  # a vector a token
    shows = "pieces"

    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        *,
        positions: Positions,
        dropout: float = 0.0,
        scaled: bool = True,
        normed: bool = False,
    ) -> None:
        super().__init__()
        self.weight = gaussian(vocab_size, d_model)
        self.positions = positions
        self.scale = math.sqrt(d_model) if scaled else 1.0
        self.normed = normed
        self.norm = Norm(d_model) if normed else nn.Identity()
        self.dropout = dropout

    def forward(self, ids: Tensor, offset: int | Tensor = 0) -> Tensor:
        """ids (B, T), the first of which stands at `offset`, one for all or one a row (B,) -> (B, T, D)."""
        x = self.norm(self.positions.embed(F.embedding(ids, self.weight) * self.scale, offset))
        return dropout(x, self.dropout, training=self.training)

    def project(self, hidden: Tensor) -> Tensor:
        """hidden (..., D) -> logits (..., V)."""
        return F.linear(hidden, self.weight)


class Bigrams(nn.Module):
    """A vector for each pair of neighbours, from a table that pairs share by a hash; zero at first."""

    native = "pairs"
    matrices: ClassVar = {"weight": 0}  # a vector a pair

    def __init__(self, rows: int, d_model: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(rows, d_model))
        self.scale = math.sqrt(d_model)  # a step moves it as far as the embeddings

    def forward(self, before: Tensor, ids: Tensor) -> Tensor:
        """ids (B, T), and what stood before each of them (B, T) -> (B, T, D)."""
        mixed = (before * 2654435761 + ids * 2246822519) % 2**32
        return F.embedding((mixed >> 9) % len(self.weight), self.weight) * self.scale
