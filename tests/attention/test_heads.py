"""Multi-head attention against torch's own with copied weights."""

import copy
from contextlib import nullcontext

import pytest
import torch
from torch import nn

from regard.attention import MultiHead, record
from regard.attention.masks import padding_mask
from regard.attention.site import Site
from regard.attention.switch import heads_off
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
    ours = MultiHead(D, H, site=Site("here")).eval()
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


@pytest.mark.parametrize("kv_heads", [1, 3])
def test_shared_keys_equal_heads_whose_keys_are_copies(kv_heads: int) -> None:
    torch.manual_seed(3)
    shared = MultiHead(66, 6, kv_heads=kv_heads).eval()
    each = MultiHead(66, 6).eval()
    each.query.load_state_dict(shared.query.state_dict())
    each.out.load_state_dict(shared.out.state_dict())
    with torch.no_grad():
        for name in ("weight", "bias"):
            parts = getattr(shared.key_value, name).chunk(2)  # keys, values: (kv_heads * 11, ...)
            copies = [part.unflatten(0, (kv_heads, 11)).repeat_interleave(6 // kv_heads, 0) for part in parts]
            getattr(each.key_value, name).copy_(torch.cat([copy.flatten(0, 1) for copy in copies]))
    x = torch.randn(B, T, 66)
    assert shared.keys_values(x).k.shape == (B, kv_heads, T, 11)
    torch.testing.assert_close(
        shared(x, shared.keys_values(x), causal=True), each(x, each.keys_values(x), causal=True)
    )


def test_key_heads_must_divide_heads() -> None:
    with pytest.raises(UsageError, match=r"kv_heads \(4\) must divide n_heads \(6\)"):
        MultiHead(66, 6, kv_heads=4)


@pytest.mark.parametrize("taped", [False, True])
def test_a_head_that_is_off_contributes_nothing(taped: bool) -> None:
    torch.manual_seed(4)
    ours = MultiHead(D, H, site=Site("here")).eval()
    x = torch.randn(B, T, D)
    rest = copy.deepcopy(ours)
    with torch.no_grad():
        rest.out.weight[:, 11:22] = 0.0  # the second head's part of the output product
    expected = rest(x, rest.keys_values(x))
    with heads_off({"here": {1}}), record() if taped else nullcontext():
        torch.testing.assert_close(ours(x, ours.keys_values(x)), expected)
    assert not torch.allclose(ours(x, ours.keys_values(x)), expected)


@pytest.mark.parametrize("head", [-1, 3])
def test_a_head_that_is_not_there_is_refused(head: int) -> None:
    ours, x = MultiHead(D, H, site=Site("here")), torch.randn(B, T, D)
    with (
        heads_off({"here": {head}}),
        pytest.raises(UsageError, match=f"heads 0 to 2, there is no head {head}"),
    ):
        ours(x, ours.keys_values(x))
