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
    (B, S) and `tgt_mask` (B, T) bool with True for real tokens; `tokens` the real ones in `tgt_out`;
    `heads` (B, S) int64 the sources' trees, where the store has them.
    """

    src: Tensor
    src_mask: Tensor
    tgt_in: Tensor
    tgt_out: Tensor
    tgt_mask: Tensor
    tokens: int
    heads: Tensor | None = None

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
            heads=None if self.heads is None else move(self.heads),
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
    heads = store.src.padded_heads(indices)
    return Batch(
        src=torch.from_numpy(src),
        src_mask=torch.from_numpy(src_mask),
        tgt_in=torch.from_numpy(tgt_in),
        tgt_out=torch.from_numpy(tgt_out),
        tgt_mask=torch.from_numpy(tgt_mask),
        tokens=int(tgt_lengths.sum()),
        heads=None if heads is None else torch.from_numpy(heads),
    )


def pad_sources(rows: Sequence[Sequence[int]], *, pad_id: int = 0) -> tuple[Tensor, Tensor]:
    """Rows of ids, each with its end token already, as `src` (B, S) int64 and `src_mask` (B, S) bool."""
    lengths = torch.tensor([len(row) for row in rows], dtype=torch.int64)
    longest = max((len(row) for row in rows), default=0)
    src = torch.full((len(rows), longest), pad_id, dtype=torch.int64)
    for number, row in enumerate(rows):
        src[number, : len(row)] = torch.tensor(row, dtype=torch.int64)
    return src, torch.arange(longest) < lengths[:, None]


def pad_heads(rows: Sequence[Sequence[int]]) -> Tensor:
    """Rows of heads, one for each token before the end, as (B, S) for `regard.attention.structural.trees`."""
    size = max((len(row) for row in rows), default=0) + 1
    heads = torch.full((len(rows), size), size, dtype=torch.int64)
    for number, row in enumerate(rows):
        heads[number, : len(row)] = torch.tensor(row, dtype=torch.int64)
    return heads
