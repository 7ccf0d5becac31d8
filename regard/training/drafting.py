"""What teaches a model to foresee its own next tokens: each step looks one further ahead than the last.

    loss = 1 / (k - 1) Σ_i Σ_t -log p_i(g_{t+i} | h_t, y_t ... y_{t+i-1})

y are the tokens of the target, h what the model makes of them, and g what the model itself says after them:
what it would not say is never kept, whoever foresees it. Where the model learns too, g is the target, and
its own teacher forcing is added. It is `regard.models.blockwise`.
"""

import math
from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any, Self

import torch
from torch import Tensor

from regard.config import Config
from regard.data.batch import Batch
from regard.text.tokenizer import Specials
from regard.training.loss import SLICE, OfPairs, token_loss
from regard.training.objective import Loss

SHARE = 0.25  # of the places of a batch that are learned from


class Drafted(OfPairs):
    """Tokens further ahead, from some of the places of a batch: neighbours teach much the same."""

    share = SHARE

    @classmethod
    def of(cls, config: Config, specials: Specials, *, measuring: bool = False) -> Self:
        """All places count where it is measured."""
        made = super().of(config, specials, measuring=measuring)
        made.share = 1.0 if measuring else SHARE
        return made

    def losses(self, model: Any, batch: Batch) -> Iterator[Loss]:
        """One loss."""
        goals, mask = batch.tgt_out, batch.tgt_mask
        with torch.no_grad() if model.frozen else nullcontext():
            hidden, state = model.read(batch.tgt_in, model.start(batch.inputs))  # (B, T, D)
        length, drafter = hidden.shape[1], model.drafter
        total = (
            drafter.narrow(hidden[:, :0]).float().sum()
        )  # 0, also of targets that have nothing further ahead
        if model.frozen:
            goals = said(model, hidden)
        else:
            total = total + token_loss(model, hidden, goals, mask, label_smoothing=self.label_smoothing)
        before = length - 1  # places with a token ahead of them
        places = torch.randperm(before)[: math.ceil(before * self.share)].sort().values.to(hidden.device)
        foreseen, part = hidden[:, places], len(places) / max(1, before)
        for i in range(min(model.ahead, length - 1)):
            near = places + i + 1 < length  # there is a token so far ahead
            places, foreseen = places[near], foreseen[:, near]
            if not len(places):
                break
            foreseen = model.foresee(foreseen, batch.tgt_out[:, places + i], state)
            further, narrow = places + i + 1, drafter.narrow(foreseen)
            loss = token_loss(drafter, narrow, goals[:, further], mask[:, further], label_smoothing=0.0)
            total = total + loss / (model.ahead * part)
        yield Loss(total)


@torch.no_grad()
def said(model: Any, hidden: Tensor) -> Tensor:
    """The likeliest tokens (B, T) at hidden (B, T, D), some at a time."""
    rows = torch.split(hidden.flatten(0, 1), max(1, SLICE // len(model.output_weight)))
    return torch.cat([model.project(some).argmax(-1) for some in rows]).view(hidden.shape[:2])


__all__ = ["Drafted", "said"]
