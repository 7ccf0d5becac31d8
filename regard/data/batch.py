"""A batch of pairs as padded tensors: the last stop before the model.

The model is fed sources = ids + end and `tgt_in` = begin + ids, and is asked for `tgt_out` = ids + end
(teacher forcing). Indices come from `sampler.py`, ids from `store.py`.
"""

from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from regard.data.inputs import Tokens
from regard.data.store import Store


@dataclass(frozen=True)
class Batch:
    """B pairs; source length S, target length T.

    `inputs` are the sources (B, S), with their trees where the store has them; `tgt_in` and `tgt_out` (B, T)
    int64 with pad where there is none; `tgt_mask` (B, T) bool with True for real tokens; `targets` counts the
    real ones in `tgt_out`.
    """

    inputs: Tokens
    tgt_in: Tensor
    tgt_out: Tensor
    tgt_mask: Tensor
    targets: int

    def to(self, device: torch.device | str) -> "Batch":
        """The same batch on a device."""
        move = partial(Tensor.to, device=device, non_blocking=True)
        return Batch(
            inputs=self.inputs.to(device),
            tgt_in=move(self.tgt_in),
            tgt_out=move(self.tgt_out),
            tgt_mask=move(self.tgt_mask),
            targets=self.targets,
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
    trees = None if heads is None else torch.from_numpy(heads)
    return Batch(
        inputs=Tokens(torch.from_numpy(src), torch.from_numpy(src_mask), trees),
        tgt_in=torch.from_numpy(tgt_in),
        tgt_out=torch.from_numpy(tgt_out),
        tgt_mask=torch.from_numpy(tgt_mask),
        targets=int(tgt_lengths.sum()),
    )
