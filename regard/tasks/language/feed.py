"""Rows of running text as a model is fed them: each token after those before it in its row.

    tokens   ... a | b  c  d  e | f ...
    inputs           a  b  c  d            the token before the row leads it in
    goals            b  c  d  e            each is asked for once, whatever row it is in

The first row of all begins with what every document does. Before this file: `regard.data.rows`.
"""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from regard.data.inputs import Tokens
from regard.data.rows import Ids, Spans, gather
from regard.text.tokenizer import Specials


@dataclass(frozen=True)
class RowBatch:
    """B rows; `goals` (B, T) are what comes after the inputs (B, T), real where `mask` (B, T) says so."""

    inputs: Tokens
    goals: Tensor
    mask: Tensor
    targets: int

    def to(self, device: torch.device | str) -> "RowBatch":
        """The same on a device."""
        goals, mask = (each.to(device, non_blocking=True) for each in (self.goals, self.mask))
        return RowBatch(self.inputs.to(device), goals, mask, self.targets)


def row_batch(ids: Ids, spans: Spans, specials: Specials) -> RowBatch:
    """The rows (B, 2) of all tokens as a batch."""
    goals, real = gather(ids, spans, fill=specials.pad)
    before = np.where(spans[:, 0] > 0, ids[spans[:, 0] - 1], specials.begin)  # (B,)
    inputs = np.concatenate([before[:, None], goals[:, :-1]], 1).astype(np.int64)
    return RowBatch(
        Tokens(torch.from_numpy(inputs)), torch.from_numpy(goals), torch.from_numpy(real), int(real.sum())
    )
