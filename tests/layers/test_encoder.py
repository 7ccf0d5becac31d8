"""The encoder layer against torch's own with copied weights, post- and pre-norm."""

import pytest
import torch
from torch import nn

from regard.attention import MultiHead
from regard.attention.masks import padding_mask
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
