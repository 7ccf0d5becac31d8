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

    `src` (B, S) int64, `tgt_in` and `tgt_out` (B, T) int64 with pad where there is none; `src_mask`
    (B, S) and `tgt_mask` (B, T) bool with True for real tokens; `tokens` the real ones in `tgt_out`.
    """

    src: Tensor
    src_mask: Tensor
    tgt_in: Tensor
    tgt_out: Tensor
    tgt_mask: Tensor
    tokens: int

    def to(self, device: torch.device | str) -> "Batch":
        """The same batch on a device."""
        move = partial(Tensor.to, device=device, non_blocking=True)
        return Batch(
            src=move(self.src),
            src_mask=move(self.src_mask),
            tgt_in=move(self.tgt_in),
            tgt_out=move(self.tgt_out),
            tgt_mask=move(self.tgt_mask),
            tokens=self.tokens,
        )


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
    tgt_mask = np.arange(tgt_in.shape[1]) < tgt_lengths
    tgt_in[~tgt_mask] = pad_id  # the end token is only ever an answer
    src_mask = np.arange(src.shape[1]) < store.src.lengths[indices][:, None]
    return Batch(
        src=torch.from_numpy(src),
        src_mask=torch.from_numpy(src_mask),
        tgt_in=torch.from_numpy(tgt_in),
        tgt_out=torch.from_numpy(tgt_out),
        tgt_mask=torch.from_numpy(tgt_mask),
        tokens=int(tgt_lengths.sum()),
    )


def pad_sources(rows: Sequence[Sequence[int]], *, pad_id: int = 0) -> tuple[Tensor, Tensor]:
    """Rows of ids, each with its end token already, as `src` (B, S) int64 and `src_mask` (B, S) bool."""
    lengths = torch.tensor([len(row) for row in rows], dtype=torch.int64)
    longest = max((len(row) for row in rows), default=0)
    src = torch.full((len(rows), longest), pad_id, dtype=torch.int64)
    for number, row in enumerate(rows):
        src[number, : len(row)] = torch.tensor(row, dtype=torch.int64)
    return src, torch.arange(longest) < lengths[:, None]
