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
from regard.fused import cross_entropy as fused
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
        upsample: float = 2.0,
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
        fits: npt.NDArray[np.bool_] = needed <= np.ceil(self.upsample * store.src_lengths)
        return fits

    def unfit(self, count: int, pairs: int) -> str:
        """With the number that is too small."""
        return (
            f"{count:,} of {pairs:,} pairs are not learned from: their targets need more places than "
            f"{self.upsample:g} for each token of the source (model.upsample)"
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
        weight, bias = model.output_weight, getattr(model, "output_bias", None)
        if bias is not None:  # h W' + b = [h, 1] [W, b]'
            hidden, weight = F.pad(hidden, (0, 1), value=1.0), torch.cat([weight, bias[:, None]], 1)
        weight = weight if torch.is_grad_enabled() else weight.detach()
        names = F.pad(targets, (1, 0), value=self.specials.blank)  # (B, L + 1)
        yield Loss(_SlicedCtc.apply(hidden, weight, names, real, lengths))  # type: ignore[no-untyped-call]

    @torch.no_grad()
    def _shown(
        self, model: Any, ids: Tensor, real: Tensor, state: Any, targets: Tensor, lengths: Tensor
    ) -> Tensor:
        """The places (B, T) with some of the labels that they should say."""
        labels = extended(targets, self.specials.blank)  # (B, U)
        said, best = _said(model.write(ids, real, state), model, labels)
        chosen = align(said, labels, real.sum(1), lengths)  # (B, T)
        wrong = (said.gather(2, chosen[..., None])[..., 0] < best) & real
        count = (self.glance * wrong.sum(1)).round().long()
        drawn = torch.rand(ids.shape, device=ids.device).masked_fill(~real, 2.0)
        shown = drawn.argsort(1).argsort(1) < count[:, None]
        return torch.where(shown & real, labels.gather(1, chosen), ids)


def _said(hidden: Tensor, model: Any, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The logits (B, T, U) of labels (B, U) at every place, and the highest of all (B, T), in slices."""
    said, best = [], []
    rows = max(1, SLICE // (hidden.shape[1] * model.output_weight.shape[0]))
    for part, names in zip(torch.split(hidden, rows), torch.split(labels, rows), strict=True):
        logits = model.project(part)  # (b, T, V)
        said.append(logits.gather(2, names[:, None].expand(-1, logits.shape[1], -1)).float())
        best.append(logits.amax(2).float())
    return torch.cat(said), torch.cat(best)


class _SlicedCtc(torch.autograd.Function):
    """The CTC loss of hidden (B, T, D), some rows at a time: all logits are never there together.

    A path has no labels but the blank and those of its target, `names` (B, L + 1). So torch's loss is given
    these columns alone; of all others the gradient is their probability, which the softmax leaves behind.
    """

    @staticmethod
    def forward(
        ctx: Any, hidden: Tensor, weight: Tensor, names: Tensor, real: Tensor, lengths: Tensor
    ) -> Tensor:
        wanted = any(ctx.needs_input_grad)
        kind = hidden.dtype if not torch.is_autocast_enabled(hidden.device.type) else torch.bfloat16
        matrix = weight.to(kind)
        grad_hidden, grad_weight = torch.zeros_like(hidden), torch.zeros_like(weight)
        total = hidden.new_zeros((), dtype=torch.float32)
        rows = max(1, SLICE // (hidden.shape[1] * weight.shape[0]))
        for start in range(0, hidden.shape[0], rows):
            some = slice(start, start + rows)
            places = real[some]
            part = hidden[some][places].to(kind)  # (N, D)
            loss, grad = _ctc(part @ matrix.t(), names[some], places, lengths[some], wanted)
            total += loss
            if grad is not None:
                grad_hidden[some][places] = (grad @ matrix).to(hidden.dtype)
                grad_weight += grad.t() @ part
        if wanted:
            ctx.save_for_backward(grad_hidden, grad_weight)
        return total

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        grad_hidden, grad_weight = ctx.saved_tensors
        return grad_hidden.mul_(grads[0]), grad_weight.mul_(grads[0]), None, None, None


def _ctc(
    logits: Tensor, names: Tensor, real: Tensor, lengths: Tensor, gradient: bool
) -> tuple[Tensor, Tensor | None]:
    """The summed loss of the logits (N, V) of all real places (B, T), and its gradient, in their place."""
    each = names[real.nonzero()[:, 0]]  # (N, L + 1)
    said = logits.gather(1, each).float()
    total, rest = _softmax(logits, each[:, 0].contiguous(), said[:, 0])
    columns = said.new_zeros(*real.shape, names.shape[1])  # (B, T, L + 1)
    columns[real] = said - total[:, None]
    first = (names[:, :, None] == names[:, None, :]).byte().argmax(2)  # of equal tokens one column is theirs
    with torch.enable_grad(), torch.autocast(logits.device.type, enabled=False):
        leaf = columns.transpose(0, 1).requires_grad_(gradient)  # (T, B, L + 1)
        loss = F.ctc_loss(leaf, first[:, 1:], real.sum(1), lengths, 0, reduction="sum")
        grad = torch.autograd.grad(loss, leaf)[0] if gradient else None
    if grad is None:
        return loss.detach(), None
    own = grad.transpose(0, 1).gather(2, first[:, None].expand_as(columns))[real]  # (N, L + 1)
    return loss.detach(), rest.scatter_(1, each, own.to(rest.dtype))


def _softmax(logits: Tensor, blanks: Tensor, quiet: Tensor) -> tuple[Tensor, Tensor]:
    """log Σ exp of logits (N, V), and their softmax in their place, of no use in the column of the blank.

    `blanks` (N,) is that column, `quiet` (N,) what stands in it: log Σ exp = quiet - log p(blank).
    """
    if fused.fits(logits, blanks):
        return quiet + fused.cross_entropy(logits, blanks, 0.0, gradient=True), logits
    total = logits.float().logsumexp(1)
    return total, (logits.float() - total[:, None]).exp().to(logits.dtype)


__all__ = ["Aligned"]
