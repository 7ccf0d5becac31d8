"""The rules of FlexAttention against the masks of the twins; here it runs uncompiled, and small."""

import pytest
import torch
from twins import padding, random_qkv

from regard.attention.bigbird import BigBird
from regard.attention.flex import attend_flex, band_rule, block_rule
from regard.attention.local import Local

pytestmark = pytest.mark.filterwarnings("ignore")  # torch says that it is slow uncompiled


@pytest.mark.parametrize("lengths", [[45, 45], [45, 30]])
def test_the_band(lengths: list[int]) -> None:
    q, k, v = (x.detach() for x in random_qkv(2, 3, 45, 45, width=16))
    mask, kernel = padding(lengths, 45), Local(6)
    out = attend_flex(q, k, v, band_rule(6, 6, 0), dense=kernel.dense, mask=mask)
    torch.testing.assert_close(out, kernel.dense(q, k, v, mask=mask)[0], atol=1e-5, rtol=1e-5)


def test_the_band_that_looks_back() -> None:
    q, k, v = (x.detach() for x in random_qkv(2, 3, 20, 45, width=16))
    kernel = Local(6, back=True)
    out = attend_flex(q, k, v, band_rule(6, 0, 25), dense=kernel.dense)
    torch.testing.assert_close(out, kernel.dense(q, k, v, causal=True)[0], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("lengths", [[45, 45], [45, 30]])
def test_the_blocks(lengths: list[int]) -> None:
    q, k, v = (x.detach() for x in random_qkv(2, 3, 45, 45, width=16))
    mask, kernel = padding(lengths, 45), BigBird(4, window=3, hubs=1, randoms=2)
    out = attend_flex(q, k, v, block_rule(kernel.seen(q, mask), 4), dense=kernel.dense, mask=mask)
    torch.testing.assert_close(out, kernel.dense(q, k, v, mask=mask)[0], atol=1e-5, rtol=1e-5)


def test_what_flex_cannot_do_goes_through_the_twin() -> None:
    q, k, v = random_qkv(2, 3, 15, 15)
    kernel, bias = Local(3), torch.randn(15, 15)
    out = attend_flex(q, k, v, band_rule(3, 3, 0), dense=kernel.dense, bias=bias)
    torch.testing.assert_close(out, kernel.dense(q, k, v, bias=bias)[0])
