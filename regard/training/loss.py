"""Cross-entropy with label smoothing, from hidden states to a sum in one go.

    loss = Σ_t (1 - ε) (-log p_t[y_t]) + ε/V Σ_v (-log p_t[v])

The output layer and the softmax are taken in slices that stay in the cache, and their gradients
are made at once, so the (tokens, V) matrix never exists as a whole. `readable_loss` is the twin.
"""

from collections.abc import Iterator
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt
import torch
import torch.nn.functional as F
from torch import Tensor

from regard.config import Config
from regard.data.batch import Batch
from regard.data.inputs import Tokens
from regard.data.store import Store
from regard.fused import cross_entropy as fused
from regard.text.tokenizer import Specials
from regard.training.objective import Loss, Objective

SLICE = 4 * 2**20  # logits in one slice: 16 MB of fp32


class Projected(Protocol):
    """A model whose hidden states become logits by one matrix, and a bias if it has an `output_bias`."""

    @property
    def output_weight(self) -> Tensor:
        """The matrix (V, D)."""
        ...


class Scored(Projected, Protocol):
    """What the loss of pairs asks of a model."""

    def __call__(self, inputs: Tokens, tgt_in: Tensor) -> Tensor: ...


def readable_loss(hidden: Tensor, weight: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    """The loss as torch has it: hidden (N, D), weight (V, D), targets (N,) -> a sum."""
    return F.cross_entropy(F.linear(hidden, weight), targets, label_smoothing=smoothing, reduction="sum")


def _loss_and_gradient(
    logits: Tensor, targets: Tensor, smoothing: float, *, gradient: bool
) -> tuple[Tensor, Tensor]:
    """The summed loss of logits (N, V), and its gradient (N, V) in their type, perhaps in their place."""
    if fused.fits(logits, targets):
        return fused.cross_entropy(logits, targets, smoothing, gradient=gradient).sum(), logits
    goal = targets[:, None]
    logp = F.log_softmax(logits.float(), -1)
    loss = -(1 - smoothing) * logp.gather(1, goal).sum() - smoothing * logp.mean(1).sum()
    if not gradient:
        return loss, logits
    grad = logp.exp_().sub_(smoothing / logits.shape[1])
    grad.scatter_add_(1, goal, grad.new_full(goal.shape, smoothing - 1))
    return loss, grad.to(logits.dtype)


class _SlicedLoss(torch.autograd.Function):
    """`readable_loss` slice by slice; the gradients are ready when the forward pass is."""

    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, targets: Tensor, smoothing: float) -> Tensor:
        wanted = any(ctx.needs_input_grad)
        kind = hidden.dtype if not torch.is_autocast_enabled(hidden.device.type) else torch.bfloat16
        matrix = weight.to(kind)
        grad_hidden = torch.empty_like(hidden)
        grad_weight = torch.zeros_like(weight)
        total = hidden.new_zeros((), dtype=torch.float32)
        rows = max(1, SLICE // weight.shape[0])
        for start in range(0, hidden.shape[0], rows):
            part, goals = hidden[start : start + rows].to(kind), targets[start : start + rows]
            loss, grad = _loss_and_gradient(part @ matrix.t(), goals, smoothing, gradient=wanted)
            total += loss
            if wanted:
                grad_hidden[start : start + rows] = grad @ matrix
                grad_weight += grad.t() @ part
        if wanted:
            ctx.save_for_backward(grad_hidden, grad_weight)
        return total

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        grad_hidden, grad_weight = ctx.saved_tensors
        return grad_hidden.mul_(grads[0]), grad_weight.mul_(grads[0]), None, None


def token_loss(
    model: Projected, hidden: Tensor, targets: Tensor, mask: Tensor, *, label_smoothing: float
) -> Tensor:
    """The loss of targets (B, T) at hidden (B, T, D), summed over the places where mask (B, T) is True.

    The output layer is computed nowhere else.
    """
    real = mask.flatten().nonzero().squeeze(1)
    rows, goals = hidden.flatten(0, 1), targets.flatten()
    if len(real) < len(goals):  # to take them all costs a copy, and another for their gradients
        rows, goals = rows.index_select(0, real), goals.index_select(0, real)  # (N, D), (N,)
    # A Function is told that a parameter wants gradients even where none are recorded.
    weight, bias = model.output_weight, getattr(model, "output_bias", None)
    if bias is not None:  # h W' + b = [h, 1] [W, b]'
        rows, weight = F.pad(rows, (0, 1), value=1.0), torch.cat([weight, bias[:, None]], 1)
    weight = weight if torch.is_grad_enabled() else weight.detach()
    loss: Tensor = _SlicedLoss.apply(rows, weight, goals, label_smoothing)  # type: ignore[no-untyped-call]
    return loss


def sequence_loss(model: Scored, batch: Batch, *, label_smoothing: float) -> Tensor:
    """The loss summed over the batch's real target tokens; divide by `batch.targets` for the mean."""
    hidden = model(batch.inputs, batch.tgt_in)  # (B, T, D)
    return token_loss(model, hidden, batch.tgt_out, batch.tgt_mask, label_smoothing=label_smoothing)


class OfPairs(Objective):
    """Base of what is learned from pairs; a kind of model names the one that it wants (`objective`)."""

    def __init__(self, label_smoothing: float) -> None:
        self.label_smoothing = label_smoothing

    @classmethod
    def of(cls, config: Config, specials: Specials, *, measuring: bool = False) -> Self:
        """The one of a run; without what only learning needs where it is measured with."""
        return cls(0.0 if measuring else config.train.label_smoothing)

    def fitting(self, store: Store) -> npt.NDArray[np.bool_]:
        """Which pairs of a store it can learn from (N,)."""
        return np.ones(len(store), np.bool_)

    def unfit(self, count: int, pairs: int) -> str:
        """In words, that so many of the pairs are not learned from, and why."""
        return f"{count:,} of {pairs:,} pairs cannot be learned from"


class Forced(OfPairs):
    """Teacher forcing: each token of a target after those before it and the source."""

    def losses(self, model: Scored, batch: Batch) -> Iterator[Loss]:
        """One loss."""
        yield Loss(sequence_loss(model, batch, label_smoothing=self.label_smoothing))


__all__ = ["Forced", "OfPairs", "readable_loss", "sequence_loss", "token_loss"]
