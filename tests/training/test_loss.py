"""The sliced loss against torch's cross-entropy, value and gradients."""

import pytest
import torch

from regard.data.batch import Batch
from regard.data.inputs import Tokens
from regard.training import loss as module
from regard.training.loss import readable_loss, sequence_loss

N, D, V = 23, 11, 37


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("rows", [1, 7, 64])
def test_equals_the_readable_twin(smoothing: float, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SLICE", rows * V)
    torch.manual_seed(0)
    targets = torch.randint(V, (N,))
    start = [torch.randn(N, D), torch.randn(V, D)]
    results = []
    for way in (module._SlicedLoss.apply, readable_loss):
        hidden, weight = (part.clone().requires_grad_() for part in start)
        loss = way(hidden, weight, targets, smoothing)
        (loss / 7).backward()
        results.append((loss, hidden.grad, weight.grad))
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-4, rtol=1e-4)


class Echo:
    """A model whose hidden states are given."""

    def __init__(self, hidden: torch.Tensor, weight: torch.Tensor) -> None:
        self.hidden, self.output_weight = hidden, weight

    def __call__(self, inputs: Tokens, tgt_in: torch.Tensor) -> torch.Tensor:
        return self.hidden


def test_padding_costs_nothing() -> None:
    torch.manual_seed(1)
    hidden, weight = torch.randn(2, 5, D), torch.randn(V, D)
    tgt = torch.randint(V, (2, 5))
    mask = torch.tensor([[True] * 5, [True] * 2 + [False] * 3])
    batch = Batch(Tokens(tgt, mask), tgt, tgt, mask, targets=7)
    expected = readable_loss(hidden[mask], weight, tgt[mask], 0.1)
    torch.testing.assert_close(sequence_loss(Echo(hidden, weight), batch, label_smoothing=0.1), expected)


def test_the_bias_of_the_output_counts() -> None:
    torch.manual_seed(2)
    hidden, weight, bias = torch.randn(2, 5, D), torch.randn(V, D), torch.randn(V, requires_grad=True)
    tgt, mask = torch.randint(V, (2, 5)), torch.ones(2, 5) > 0
    model = Echo(hidden, weight)
    model.output_bias = bias
    logits = hidden @ weight.t() + bias
    expected = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), tgt.flatten(), label_smoothing=0.1, reduction="sum"
    )
    found = sequence_loss(model, Batch(Tokens(tgt, mask), tgt, tgt, mask, targets=10), label_smoothing=0.1)
    torch.testing.assert_close(found, expected)
    (wanted,) = torch.autograd.grad(expected, bias)
    torch.testing.assert_close(torch.autograd.grad(found, bias)[0], wanted)
