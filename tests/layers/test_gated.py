"""Attention over a map: the gate, what looks at what, the tape, and a loop that computes the same."""

import math

import torch
import torch.nn.functional as F

from regard.attention.heads import MultiHead
from regard.attention.record import record
from regard.attention.site import Site
from regard.attention.switch import heads_off
from regard.layers.gated import Gated


def block(gate: float = 0.7) -> Gated:
    torch.manual_seed(1)
    made = Gated(MultiHead(6, 2, site=Site("generator", 1)))
    made.gate.data.fill_(gate)
    return made


def test_a_shut_gate_lets_the_map_through_and_learns_at_once() -> None:
    x = torch.randn(2, 6, 3, 5)
    made = Gated(MultiHead(6, 2))
    assert float(made.gate.detach()) == 0
    out = made(x)
    assert torch.equal(out, x)
    out.square().sum().backward()
    assert float(made.gate.grad) != 0


def test_it_is_what_a_loop_over_places_computes() -> None:
    made, x = block(), torch.randn(1, 6, 4, 6)
    heads = made.heads
    pooled = F.max_pool2d(x, 2)[0].flatten(1).T  # (S, C)
    k, v = heads.key_value(pooled).chunk(2, -1)
    wanted = torch.empty_like(x)
    for row in range(4):
        for column in range(6):
            q = heads.query(x[0, :, row, column])
            gathered = []
            for head in range(2):
                part = slice(3 * head, 3 * head + 3)
                weights = (k[:, part] @ q[part] / math.sqrt(3)).softmax(0)
                gathered.append(weights @ v[:, part])
            found = heads.out(torch.cat(gathered))
            wanted[0, :, row, column] = x[0, :, row, column] + made.gate * found
    torch.testing.assert_close(made(x), wanted)


def test_the_tape_has_a_row_a_place_and_heads_can_be_off() -> None:
    made, x = block(), torch.randn(2, 6, 4, 6)
    with record() as tape:
        out = made(x)
    (weights,) = tape["generator.1.self"]
    assert weights.shape == (2, 2, 24, 6)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 2, 24))
    with heads_off({"generator.1.self": [0, 1]}):
        silent = made(x)
    bias = made.heads.out.bias[:, None, None]
    torch.testing.assert_close(silent, x + made.gate * bias)
    assert not torch.allclose(out, silent)
