"""Multi-head attention against torch's own with copied weights."""

import pytest
import torch
from torch import nn

from regard.attention import MultiHead, record
from regard.attention.masks import padding_mask
from regard.errors import UsageError

B, T, S, H, D = 2, 5, 7, 3, 33


def torch_twin(ours: MultiHead) -> nn.MultiheadAttention:
    theirs = nn.MultiheadAttention(D, H, batch_first=True)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([ours.query.weight, ours.key_value.weight]))
        theirs.in_proj_bias.copy_(torch.cat([ours.query.bias, ours.key_value.bias]))
        theirs.out_proj.load_state_dict(ours.out.state_dict())
    return theirs.eval()


def test_equals_torch_with_padding_and_weights() -> None:
    torch.manual_seed(0)
    ours = MultiHead(D, H, name="here").eval()
    x, memory = torch.randn(B, T, D), torch.randn(B, S, D)
    real = torch.tensor([[True] * S, [True] * 4 + [False] * 3])
    expected, weights = torch_twin(ours)(
        x, memory, memory, key_padding_mask=~real, average_attn_weights=False
    )
    seen = ours.keys_values(memory)
    torch.testing.assert_close(ours(x, seen, mask=padding_mask(real)), expected)
    with record() as tape:
        torch.testing.assert_close(ours(x, seen, mask=padding_mask(real)), expected)
    assert tape.names() == ["here"]
    torch.testing.assert_close(tape["here"][0], weights)


def test_causal_equals_torch() -> None:
    torch.manual_seed(1)
    ours = MultiHead(D, H).eval()
    x = torch.randn(B, T, D)
    mask = nn.Transformer.generate_square_subsequent_mask(T)
    expected, _ = torch_twin(ours)(x, x, x, attn_mask=mask)
    torch.testing.assert_close(ours(x, ours.keys_values(x), causal=True), expected)


def test_cached_equals_uncached() -> None:
    torch.manual_seed(2)
    ours = MultiHead(D, H).eval()
    x = torch.randn(B, T, D)
    whole = ours(x, ours.keys_values(x), causal=True)
    seen, steps = ours.keys_values(x[:, :0]), []
    for t in range(T):
        seen = seen.append(ours.keys_values(x[:, t : t + 1]))
        steps.append(ours(x[:, t : t + 1], seen, causal=True))
    torch.testing.assert_close(torch.cat(steps, 1), whole)


def test_heads_must_divide_the_width() -> None:
    with pytest.raises(UsageError, match=r"n_heads \(6\) must divide d_model \(512\)"):
        MultiHead(512, 6)
