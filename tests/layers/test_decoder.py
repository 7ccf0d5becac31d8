"""The decoder layer against torch's own with copied weights, and step by step against itself."""

import pytest
import torch
from torch import nn

from regard.attention import MultiHead
from regard.attention.masks import padding_mask
from regard.attention.site import crossing, writing
from regard.layers import DecoderLayer

B, T, S, H, D, F = 2, 5, 7, 3, 33, 29


def make(norm: str) -> DecoderLayer:
    torch.manual_seed(0)
    return DecoderLayer(
        MultiHead(D, H, site=writing(0)), MultiHead(D, H, site=crossing(0)), D, F, norm=norm, dropout=0.0
    )


def twin(ours: DecoderLayer, norm: str) -> nn.TransformerDecoderLayer:
    theirs = nn.TransformerDecoderLayer(D, H, F, 0.0, batch_first=True, norm_first=norm == "pre")
    for own, other in ((ours.attention, theirs.self_attn), (ours.cross, theirs.multihead_attn)):
        other.in_proj_weight.data = torch.cat([own.query.weight, own.key_value.weight]).detach()
        other.in_proj_bias.data = torch.cat([own.query.bias, own.key_value.bias]).detach()
        other.out_proj.load_state_dict(own.out.state_dict())
    for own, other in (
        (ours.feed_forward.inner, theirs.linear1),
        (ours.feed_forward.outer, theirs.linear2),
        (ours.around_attention.norm, theirs.norm1),
        (ours.around_cross.norm, theirs.norm2),
        (ours.around_feed_forward.norm, theirs.norm3),
    ):
        nn.init.normal_(own.weight)
        other.load_state_dict(own.state_dict())
    return theirs


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_equals_torch(norm: str) -> None:
    ours = make(norm)
    theirs = twin(ours, norm)
    x, memory = torch.randn(B, T, D), torch.randn(B, S, D)
    real = torch.tensor([[True] * S, [True] * 4 + [False] * 3])
    future = torch.ones(T, T, dtype=torch.bool).triu(1)
    expected = theirs(x, memory, tgt_mask=future, memory_key_padding_mask=~real)
    found, _ = ours(x, ours.cross.keys_values(memory), memory_mask=padding_mask(real))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("norm", ["post", "pre"])
def test_step_by_step_equals_the_whole(norm: str) -> None:
    layer = make(norm).eval()
    x, memory = torch.randn(B, T, D), layer.cross.keys_values(torch.randn(B, S, D))
    whole, _ = layer(x, memory)
    past, steps = None, []
    for t in range(T):
        out, past = layer(x[:, t : t + 1], memory, past=past)
        steps.append(out)
    torch.testing.assert_close(torch.cat(steps, 1), whole, atol=1e-5, rtol=1e-4)
