"""The simple recurrence: the formula, number by number, and a text read in parts."""

import math

import torch

from regard.attention.heads import MultiHead
from regard.attention.site import crossing
from regard.layers.ssru import SSRU, SSRULayer

B, T, D, H, S = 2, 5, 6, 3, 7


def unit() -> SSRU:
    torch.manual_seed(1)
    made = SSRU(D)
    torch.nn.init.normal_(made.forget.bias)
    return made.eval()


def test_it_is_the_formula() -> None:
    made, x = unit(), torch.randn(B, T, D)
    found, last = made(x)
    w, wf, bf = (p.tolist() for p in (made.value.weight, made.forget.weight, made.forget.bias))
    for b in range(B):
        memory = [0.0] * D
        for t in range(T):
            place = x[b, t].tolist()
            for d in range(D):
                value = sum(w[d][k] * place[k] for k in range(D))
                forget = 1 / (1 + math.exp(-bf[d] - sum(wf[d][k] * place[k] for k in range(D))))
                memory[d] = forget * memory[d] + (1 - forget) * value
                assert abs(found[b, t, d].item() - max(0.0, memory[d])) < 1e-5
        torch.testing.assert_close(last[b], torch.tensor(memory))


def test_a_text_in_parts_is_the_whole_text() -> None:
    made, x = unit(), torch.randn(B, T, D)
    whole, _ = made(x)
    first, memory = made(x[:, :2])
    second, _ = made(x[:, 2:], memory)
    torch.testing.assert_close(torch.cat([first, second], 1), whole)


def test_the_future_changes_nothing_before_it() -> None:
    torch.manual_seed(2)
    layer = SSRULayer(MultiHead(D, H, site=crossing(0)), D, 11, norm="post", dropout=0.0).eval()
    seen = layer.cross.keys_values(torch.randn(B, S, D))
    x = torch.randn(B, T, D)
    other = torch.cat([x[:, :3], torch.randn(B, T - 3, D)], 1)
    torch.testing.assert_close(layer(x, seen)[0][:, :3], layer(other, seen)[0][:, :3])
    assert not torch.equal(layer(x, seen)[0][:, 3:], layer(other, seen)[0][:, 3:])
