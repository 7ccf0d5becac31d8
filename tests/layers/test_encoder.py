"""The encoder layer against torch's own with copied weights, post- and pre-norm."""

import pytest
import torch
from torch import nn

from regard.attention import MultiHead, heads_off, record
from regard.attention.kernel import build_kernel
from regard.attention.masks import padding_mask
from regard.attention.site import Site, reading
from regard.config import AttentionConfig
from regard.layers import EncoderLayer

B, S, H, D, F = 2, 7, 3, 33, 29


def copy_attention(theirs: nn.MultiheadAttention, ours: MultiHead) -> None:
    """torch's packed query, key and value from our two matrices."""
    theirs.in_proj_weight.data = torch.cat([ours.query.weight, ours.key_value.weight]).detach()
    theirs.in_proj_bias.data = torch.cat([ours.query.bias, ours.key_value.bias]).detach()
    theirs.out_proj.load_state_dict(ours.out.state_dict())


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_equals_torch(norm: str) -> None:
    torch.manual_seed(0)
    ours = EncoderLayer(MultiHead(D, H), D, F, norm=norm, dropout=0.0)
    theirs = nn.TransformerEncoderLayer(D, H, F, 0.0, batch_first=True, norm_first=norm == "pre")
    copy_attention(theirs.self_attn, ours.attention)
    for own, other in (
        (ours.feed_forward.inner, theirs.linear1),
        (ours.feed_forward.outer, theirs.linear2),
        (ours.around_attention.norm, theirs.norm1),
        (ours.around_feed_forward.norm, theirs.norm2),
    ):
        nn.init.normal_(own.weight)
        nn.init.normal_(own.bias)
        other.load_state_dict(own.state_dict())
    x = torch.randn(B, S, D)
    real = torch.tensor([[True] * S, [True] * 4 + [False] * 3])
    expected = theirs(x, src_key_padding_mask=~real)
    torch.testing.assert_close(ours(x, padding_mask(real)), expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("kind", ["full", "local", "linformer"])
def test_a_layer_that_is_computed_again_is_the_same_layer(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With dropout, with heads off at that moment only, in slices that do not come out even."""
    monkeypatch.setattr("regard.layers.encoder.SLICE", 5)
    config = AttentionConfig(kind=kind, window=3, rank=4, max_length=20)
    layer = EncoderLayer(
        MultiHead(D, H, site=Site("here"), kernel=build_kernel(config, reading(0)), dropout=0.25),
        D,
        F,
        norm="pre",
        dropout=0.0,
    )
    x = torch.randn(B, 13, D, requires_grad=True)
    results = []
    for recompute in ("never", "always"):
        layer.recompute = recompute
        torch.manual_seed(7)
        with heads_off({"here": [1]}):
            out = layer(x)
        results.append((out, torch.autograd.grad(out.square().sum(), [x, *layer.parameters()])))
    torch.testing.assert_close(results[0], results[1], atol=1e-5, rtol=1e-4)


def test_what_a_long_layer_holds_for_the_backward_pass_is_its_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("regard.layers.encoder.LONG", 50)
    layer = EncoderLayer(MultiHead(D, H), D, F, norm="pre", dropout=0.0)

    def held(length: int) -> int:
        sizes: list[int] = []
        x = torch.randn(1, length, D, requires_grad=True)
        with torch.autograd.graph.saved_tensors_hooks(lambda t: sizes.append(t.numel()) or t, lambda t: t):
            layer(x)
        return sum(sizes)

    assert held(50) <= 2 * 50 * D
    assert held(49) > 5 * 49 * D
    with record() as tape:
        assert layer(torch.randn(1, 50, D, requires_grad=True)).requires_grad
    assert len(tape["attention"]) == 1
