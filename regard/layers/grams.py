"""Short runs of tokens that speak for labels by themselves: the wide half of a wide and deep model.

    spoken = Σ_g w[hash(g)] / √n          over the n runs of one, two and three tokens: (B, L)

Linear, as logistic regression over counts is, and hard to beat where texts are few (Wang and Manning 2012);
the encoder beside it learns what else the order says (Cheng et al. 2016). Runs share rows of the table by a
hash. Used by `regard.models.labeller`.
"""

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

LONGEST = 3  # tokens of a run


class Grams(nn.Module):
    """Ids in, a number a label out; zero at first."""

    matrices: ClassVar = {"weight": 0}  # a vector a run

    def __init__(self, rows: int, labels: int, *, dropout: float = 0.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(rows, labels))
        self.dropout = dropout
        self.scale = 4.0  # a run is met less often than a token, so that a step has to move it further

    def runs(self, ids: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
        """ids (B, S), real (B, S) -> the row of each run (B, N), and whether its tokens are real (B, N)."""
        mixed, found, whole = torch.zeros_like(ids), [], []
        for more in range(min(LONGEST, ids.shape[1])):
            mixed = (mixed[:, : ids.shape[1] - more] * 2654435761 + ids[:, more:] * 2246822519 + more) % 2**32
            found.append((mixed >> 9) % len(self.weight))
            whole.append(real[:, more:])  # padding stands at the ends
        return torch.cat(found, 1), torch.cat(whole, 1)

    def forward(self, ids: Tensor, real: Tensor) -> Tensor:
        """ids (B, S), padded at their ends, real (B, S) -> (B, L)."""
        runs, whole = self.runs(ids, real)
        loud = whole.to(self.weight.dtype) * self.scale / whole.sum(1, keepdim=True).sqrt()
        if self.training and self.dropout:
            loud = F.dropout(loud, self.dropout)
        return F.embedding_bag(runs, self.weight, per_sample_weights=loud, mode="sum")
