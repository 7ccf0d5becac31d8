"""What teaches the heads that propose tokens: each foresees one further ahead than the model itself.

    loss = 1 / (k - 1) Σ_i Σ_t -log p_i(y_{t+i} | h_t, y_t)

Where the model under the heads learns too, its own teacher forcing is added. It is `regard.models.blockwise`.
"""

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import torch

from regard.data.batch import Batch
from regard.training.loss import OfPairs, token_loss
from regard.training.objective import Loss


class Drafted(OfPairs):
    """Heads that look further ahead."""

    def losses(self, model: Any, batch: Batch) -> Iterator[Loss]:
        """One loss."""
        smoothing = self.label_smoothing
        with torch.no_grad() if model.frozen else nullcontext():
            hidden = model(batch.inputs, batch.tgt_in)  # (B, T, D)
        total = hidden.new_zeros(())
        if not model.frozen:
            total = token_loss(model, hidden, batch.tgt_out, batch.tgt_mask, label_smoothing=smoothing)
        drafts = model.draft(hidden, batch.tgt_out)  # (B, T, k - 1, D)
        count = drafts.shape[2]
        for i in range(min(count, hidden.shape[1] - 1)):
            ahead = slice(i + 1, None), slice(None, hidden.shape[1] - i - 1)
            total = (
                total
                + token_loss(
                    model,
                    drafts[:, ahead[1], i],
                    batch.tgt_out[:, ahead[0]],
                    batch.tgt_mask[:, ahead[0]],
                    label_smoothing=smoothing,
                )
                / count
            )
        yield Loss(total)


__all__ = ["Drafted"]
