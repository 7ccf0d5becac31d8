"""What teaches a model to write at once into more places than it needs: CTC, with a glance at the target.

    loss = -log Σ over the paths that say the target Π_t p_t(label)        (Graves et al. 2006)

While it learns, a first pass writes; where its likeliest path differs from the best one that says the target
(Viterbi), a share of what is wrong is shown, at places drawn at random, and the pass that is learned from
has to find the rest (glancing: Qian et al. 2021). The model is `regard.models.ctc`.
"""

from collections.abc import Iterator
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.config import Config
from regard.data.batch import Batch
from regard.data.store import Store
from regard.decoding.lattice import align, extended
from regard.text.tokenizer import OUR_SPECIALS, Specials
from regard.training.loss import SLICE, OfPairs
from regard.training.objective import Loss


class Aligned(OfPairs):
    """All paths that say the target."""

    def __init__(
        self,
        label_smoothing: float = 0.0,
        specials: Specials = OUR_SPECIALS,
        *,
        glance: float = 0.0,
        upsample: int = 2,
    ) -> None:
        super().__init__(label_smoothing)
        self.specials, self.glance, self.upsample = specials, glance, upsample

    @classmethod
    def of(cls, config: Config, specials: Specials, *, measuring: bool = False) -> Self:
        """A glance is for learning alone."""
        glance = 0.0 if measuring else config.train.glance
        return cls(0.0, specials, glance=glance, upsample=config.model.upsample)

    def fitting(self, store: Store) -> npt.NDArray[np.bool_]:
        """Targets with a place for each token, and one between two that are equal."""
        same = np.zeros(len(store.tgt.ids) + 1, np.int64)
        np.cumsum(store.tgt.ids[1:] == store.tgt.ids[:-1], out=same[1:-1])
        same[-1] = same[-2] if len(same) > 1 else 0
        first, end = store.tgt.offsets[:-1], store.tgt.offsets[1:]
        repeats = np.where(end > first, same[np.maximum(end - 1, 0)] - same[first], 0)
        needed = (end - first) + repeats
        fits: npt.NDArray[np.bool_] = needed <= self.upsample * store.src_lengths
        return fits

    def unfit(self, count: int, pairs: int) -> str:
        """With the number that is too small."""
        return (
            f"{count:,} of {pairs:,} pairs are not learned from: their targets need more places than "
            f"{self.upsample} for each token of the source (model.upsample)"
        )

    def losses(self, model: Any, batch: Batch) -> Iterator[Loss]:
        """One loss, summed over the batch."""
        state = model.start(batch.inputs)
        ids, real = model.places(state, self.specials.mask)
        lengths = batch.tgt_mask.sum(1) - 1
        targets = batch.tgt_out[:, : max(1, int(lengths.max()))]
        if self.glance:
            ids = self._shown(model, ids, real, state, targets, lengths)
        hidden = model.write(ids, real, state)
        blank = self.specials.blank
        weight, bias = model.output_weight, getattr(model, "output_bias", None)
        if bias is not None:  # h W' + b = [h, 1] [W, b]'
            hidden, weight = F.pad(hidden, (0, 1), value=1.0), torch.cat([weight, bias[:, None]], 1)
        weight = weight if torch.is_grad_enabled() else weight.detach()
        places = real.sum(1)
        yield Loss(_SlicedCtc.apply(hidden, weight, targets, places, lengths, blank))  # type: ignore[no-untyped-call]

    @torch.no_grad()
    def _shown(
        self, model: Any, ids: Tensor, real: Tensor, state: Any, targets: Tensor, lengths: Tensor
    ) -> Tensor:
        """The places (B, T) with some of the labels that they should say."""
        labels = extended(targets, self.specials.blank)  # (B, U)
        hidden = model.write(ids, real, state)
        said, own = _said(hidden, model, labels)
        path = labels.gather(1, align(said, labels, real.sum(1), lengths))  # (B, T)
        wrong = ((path != own) & real).sum(1)
        count = (self.glance * wrong).round().long()
        drawn = torch.rand(ids.shape, device=ids.device).masked_fill(~real, 2.0)
        chosen = drawn.argsort(1).argsort(1) < count[:, None]
        return torch.where(chosen & real, path, ids)


def _said(hidden: Tensor, model: Any, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The logits (B, T, U) of labels (B, U) at every place, and the likeliest of all (B, T), in slices."""
    said, own = [], []
    rows = max(1, SLICE // (hidden.shape[1] * model.output_weight.shape[0]))
    for part, names in zip(torch.split(hidden, rows), torch.split(labels, rows), strict=True):
        logits = model.project(part).float()  # (b, T, V)
        said.append(logits.gather(2, names[:, None].expand(-1, logits.shape[1], -1)))
        own.append(logits.argmax(2))
    return torch.cat(said), torch.cat(own)


class _SlicedCtc(torch.autograd.Function):
    """torch's CTC loss, some rows at a time: the logits of all of them are never there together."""

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, targets: Tensor, places: Tensor, lengths: Tensor, blank: int
    ) -> Tensor:
        wanted = any(ctx.needs_input_grad)
        kind = hidden.dtype if not torch.is_autocast_enabled(hidden.device.type) else torch.bfloat16
        matrix = weight.to(kind)
        grad_hidden, grad_weight = torch.zeros_like(hidden), torch.zeros_like(weight)
        total = hidden.new_zeros((), dtype=torch.float32)
        rows = max(1, SLICE // (hidden.shape[1] * weight.shape[0]))
        for start in range(0, hidden.shape[0], rows):
            some = slice(start, start + rows)
            part = hidden[some].to(kind)
            loss, grad = _ctc(
                (part @ matrix.t()).float(), targets[some], places[some], lengths[some], blank, wanted
            )
            total += loss
            if grad is not None:
                grad = grad.to(kind)
                grad_hidden[some] = grad @ matrix
                grad_weight += grad.flatten(0, 1).t() @ part.flatten(0, 1)
        if wanted:
            ctx.save_for_backward(grad_hidden, grad_weight)
        return total

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        grad_hidden, grad_weight = ctx.saved_tensors
        return grad_hidden.mul_(grads[0]), grad_weight.mul_(grads[0]), None, None, None, None


def _ctc(
    logits: Tensor, targets: Tensor, places: Tensor, lengths: Tensor, blank: int, gradient: bool
) -> tuple[Tensor, Tensor | None]:
    """The summed loss of logits (B, T, V), and its gradient."""
    with torch.enable_grad(), torch.autocast(logits.device.type, enabled=False):
        leaf = logits.detach().requires_grad_(gradient)
        logp = leaf.log_softmax(-1).transpose(0, 1)  # (T, B, V)
        loss = F.ctc_loss(logp, targets, places, lengths, blank, reduction="sum")
        return loss.detach(), torch.autograd.grad(loss, leaf)[0] if gradient else None


__all__ = ["Aligned"]
