"""Cross-entropy with label smoothing, from hidden states to a sum in one go.

    loss = Σ_t (1 - ε) (-log p_t[y_t]) + ε/V Σ_v (-log p_t[v])

The output layer and the softmax are taken in slices that stay in the cache, and their gradients
are made at once, so the (tokens, V) matrix never exists as a whole. `readable_loss` is the twin.
"""

from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.attention.structural import trees
from regard.data.batch import Batch

SLICE = 4 * 2**20  # logits in one slice: 16 MB of fp32


class Scored(Protocol):
    """What the loss asks of a model."""

    output_weight: Tensor

    def __call__(self, src: Tensor, src_mask: Tensor, tgt_in: Tensor) -> Tensor: ...


def readable_loss(hidden: Tensor, weight: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    """The loss as torch has it: hidden (N, D), weight (V, D), targets (N,) -> a sum."""
    return F.cross_entropy(F.linear(hidden, weight), targets, label_smoothing=smoothing, reduction="sum")


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
            part, goal = hidden[start : start + rows].to(kind), targets[start : start + rows, None]
            logp = F.log_softmax((part @ matrix.t()).float(), -1)  # (rows, V)
            total -= (1 - smoothing) * logp.gather(1, goal).sum() + smoothing * logp.mean(1).sum()
            if wanted:
                grad = logp.exp_().sub_(smoothing / weight.shape[0])
                grad.scatter_add_(1, goal, grad.new_full(goal.shape, smoothing - 1))
                grad = grad.to(kind)
                grad_hidden[start : start + rows] = grad @ matrix
                grad_weight += grad.t() @ part
        if wanted:
            ctx.save_for_backward(grad_hidden, grad_weight)
        return total

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        grad_hidden, grad_weight = ctx.saved_tensors
        return grad_hidden.mul_(grads[0]), grad_weight.mul_(grads[0]), None, None


def sequence_loss(model: Scored, batch: Batch, *, label_smoothing: float) -> Tensor:
    """The loss summed over the batch's real target tokens; divide by `batch.tokens` for the mean."""
    with trees(batch.heads):
        hidden = model(batch.src, batch.src_mask, batch.tgt_in)  # (B, T, D)
    real = batch.tgt_mask.flatten().nonzero().squeeze(1)
    rows = hidden.flatten(0, 1).index_select(0, real)  # (N, D)
    targets = batch.tgt_out.flatten().index_select(0, real)  # (N,)
    # A Function is told that a parameter wants gradients even where none are recorded.
    weight, bias = model.output_weight, getattr(model, "output_bias", None)
    if bias is not None:  # h W' + b = [h, 1] [W, b]'
        rows, weight = F.pad(rows, (0, 1), value=1.0), torch.cat([weight, bias[:, None]], 1)
    weight = weight if torch.is_grad_enabled() else weight.detach()
    loss: Tensor = _SlicedLoss.apply(rows, weight, targets, label_smoothing)  # type: ignore[no-untyped-call]
    return loss


__all__ = ["readable_loss", "sequence_loss"]
