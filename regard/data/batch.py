"""A batch of pairs as padded tensors: the last stop before the model.

The model is fed `src` = ids + end and `tgt_in` = begin + ids, and is asked for `tgt_out` = ids + end
(teacher forcing). Indices come from `sampler.py`, ids from `store.py`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from regard.data.store import Store


@dataclass(frozen=True)
class Batch:
    """B pairs; source length S, target length T.

    `src` (B, S) int64, `src_mask` (B, S) bool with True for real tokens, `tgt_in` and `tgt_out`
    (B, T) int64 with pad where there is none, `tokens` the number of real tokens in `tgt_out`.
    """

    src: Tensor
    src_mask: Tensor
    tgt_in: Tensor
    tgt_out: Tensor
    tokens: int

    def to(self, device: torch.device | str) -> "Batch":
        """The same batch on a device."""
        move = partial(Tensor.to, device=device, non_blocking=True)
        return Batch(move(self.src), move(self.src_mask), move(self.tgt_in), move(self.tgt_out), self.tokens)


def collate(
    store: Store, indices: npt.NDArray[np.integer], *, pad_id: int, begin_id: int, end_id: int
) -> Batch:
    """The pairs `indices` (B,) of a store as one batch."""
    src = store.src.padded(indices, end_id=end_id, pad_id=pad_id)  # (B, S)
    tgt_out = store.tgt.padded(indices, end_id=end_id, pad_id=pad_id)  # (B, T)
    tgt_lengths = store.tgt.lengths[indices][:, None]  # (B, 1)
    tgt_in = np.empty_like(tgt_out)
    tgt_in[:, 0] = begin_id
    tgt_in[:, 1:] = tgt_out[:, :-1]
    tgt_in[np.arange(tgt_in.shape[1]) >= tgt_lengths] = pad_id  # the end token is only ever an answer
    src_mask = np.arange(src.shape[1]) < store.src.lengths[indices][:, None]
    tensor = torch.from_numpy
    return Batch(tensor(src), tensor(src_mask), tensor(tgt_in), tensor(tgt_out), int(tgt_lengths.sum()))


def pad_sources(rows: Sequence[Sequence[int]], *, pad_id: int = 0) -> tuple[Tensor, Tensor]:
    """Rows of ids, each with its end token already, as `src` (B, S) int64 and `src_mask` (B, S) bool."""
    lengths = torch.tensor([len(row) for row in rows], dtype=torch.int64)
    longest = max((len(row) for row in rows), default=0)
    src = torch.full((len(rows), longest), pad_id, dtype=torch.int64)
    for number, row in enumerate(rows):
        src[number, : len(row)] = torch.tensor(row, dtype=torch.int64)
    return src, torch.arange(longest) < lengths[:, None]
