"""The loss in one pass against torch's cross-entropy: values and gradients, on every path."""

import pytest
import torch
import torch.nn.functional as F

from regard.fused.cross_entropy import cross_entropy, fits


@pytest.mark.parametrize("width", [1, 13, 37, 1009])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("kind", [torch.float32, torch.bfloat16])
def test_it_is_torchs(path: str, width: int, smoothing: float, kind: torch.dtype) -> None:
    torch.manual_seed(0)
    logits, targets = (torch.randn(19, width) * 5).to(kind), torch.randint(width, (19,))
    leaf = logits.float().requires_grad_()
    expected = F.cross_entropy(leaf, targets, label_smoothing=smoothing, reduction="none")
    expected.sum().backward()
    assert fits(logits, targets)
    before = logits.clone()
    torch.testing.assert_close(cross_entropy(logits, targets, smoothing, gradient=False), expected.detach())
    assert torch.equal(logits, before)
    torch.testing.assert_close(cross_entropy(logits, targets, smoothing, gradient=True), expected.detach())
    tolerance = 2e-5 if kind == torch.float32 else 1e-2
    assert leaf.grad is not None
    torch.testing.assert_close(logits.float(), leaf.grad, atol=tolerance, rtol=tolerance)


def test_a_logit_that_is_no_number_is_seen(path: str) -> None:
    logits = torch.zeros(3, 37)
    logits[1, 5] = float("nan")
    losses = cross_entropy(logits, torch.zeros(3, dtype=torch.int64), 0.1, gradient=True)
    assert losses.isnan().tolist() == [False, True, False]
    assert logits[1].isnan().all()
