"""The LSTM-N: against the paper's sums written as loops over rows, heads and places."""

import pytest
import torch

from regard.attention import record
from regard.attention.site import Site
from regard.attention.switch import heads_off
from regard.errors import UsageError
from regard.kinds import SCORES
from regard.layers.lstmn import MemoryLSTM

B, T, H, K = 2, 5, 3, 4
D = H * K


def make(score: str = "scaled-dot", **options: float) -> MemoryLSTM:
    torch.manual_seed(0)
    return MemoryLSTM(D, H, site=Site("self"), score=score, norm="post", dropout=0.0, **options)


def by_the_paper(layer: MemoryLSTM, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """One row x (T, D): (h (T, D), weights (H, T, T)), a number at a time where it matters."""
    hidden: list[torch.Tensor] = []
    cells: list[torch.Tensor] = []
    looked, weights = torch.zeros(D), torch.zeros(H, T, T)
    for t in range(T):
        q = layer.query(x[t]) + layer.query_looked(looked)
        looked, memory = torch.zeros(D), torch.zeros(D)
        for head in range(H if t else 0):
            part = slice(head * K, (head + 1) * K)
            keys = torch.stack([layer.key(hidden[i]) for i in range(t)])
            rows = keys.view(t, H, K).transpose(0, 1)[None]  # all heads: some scores have weights for each
            scores = layer.score(q.view(1, H, 1, K), rows)[0, head, 0]  # (t,)
            share = scores.exp() / scores.exp().sum()
            weights[head, t, :t] = share
            for i in range(t):
                looked[part] += share[i] * hidden[i][part]
                memory[part] += share[i] * cells[i][part]
        gates = layer.cell.weight_ih @ x[t] + layer.cell.bias_ih
        gates = gates + layer.cell.weight_hh @ looked + layer.cell.bias_hh
        i, f, g, o = gates.chunk(4)
        cells.append(f.sigmoid() * memory + i.sigmoid() * g.tanh())
        hidden.append(o.sigmoid() * cells[-1].tanh())
    return torch.stack(hidden), weights


@pytest.mark.parametrize("score", SCORES)
def test_it_is_the_papers_formula(score: str) -> None:
    layer = make(score)
    x = torch.randn(B, T, D)
    with torch.no_grad():
        with record() as tape:
            recorded, _ = layer(x)
        out, memory = layer(x)
        expected = [by_the_paper(layer, row) for row in x]
        states = torch.stack([h for h, _ in expected])
        torch.testing.assert_close(out, layer.around.norm(x + states), atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(recorded, out, atol=1e-5, rtol=1e-4)
    assert len(tape["self"]) == 1
    weights = torch.stack([w for _, w in expected])
    torch.testing.assert_close(tape["self"][0], weights, atol=1e-5, rtol=1e-4)
    kept = memory.places.unflatten(-1, (3, K))[..., 1, :]  # (B, H, T, K)
    torch.testing.assert_close(kept.transpose(1, 2).flatten(2), states, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("score", SCORES)
def test_gradients_are_those_of_finite_differences(score: str) -> None:
    layer = make(score).double()
    x = torch.randn(1, 4, D, dtype=torch.double, requires_grad=True)

    def read(x: torch.Tensor, *weights: torch.Tensor) -> torch.Tensor:
        return layer(x)[0]

    weights = [layer.key.weight, layer.query_looked.weight, layer.query.bias, *layer.score.parameters()]
    assert torch.autograd.gradcheck(read, (x, *weights), fast_mode=True)


def test_one_place_more_goes_on_from_what_was_read() -> None:
    layer = make()
    x = torch.randn(B, T, D)
    whole, _ = layer(x)
    first, memory = layer(x[:, :2])
    second, memory = layer(x[:, 2:], memory)
    torch.testing.assert_close(torch.cat([first, second], 1), whole)
    swapped = memory.select(torch.tensor([1, 0, 1]))
    again, _ = layer(x[[1, 0, 1], -1:], swapped)
    torch.testing.assert_close(again[0], again[2])


def test_a_step_on_the_tape_has_a_column_for_its_own_place() -> None:
    layer = make()
    x = torch.randn(B, 3, D)
    _, memory = layer(x[:, :2])
    with record() as tape:
        layer(x[:, 2:], memory)
    weights = tape["self"][0]
    assert weights.shape == (B, H, 1, 3)
    assert (weights[..., 2] == 0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(B, H, 1))


def test_a_head_that_is_off_gathers_nothing() -> None:
    layer = make()
    x = torch.randn(B, T, D)
    with torch.no_grad():
        on, _ = layer(x)
        with heads_off({"self": {0, 1, 2}}):
            out, _ = layer(x)
        nothing = torch.zeros(B, D)
        for t in range(T):  # with no head left every place begins anew
            h, _ = layer.cell(x[:, t], (nothing, nothing))
            torch.testing.assert_close(out[:, t], layer.around.norm(x[:, t] + h))
    assert not torch.allclose(on, out, atol=1e-3)
    with pytest.raises(UsageError, match="no head 3"), heads_off({"self": {3}}):
        layer(x)


def test_dropped_weights_are_drawn_anew_for_each_call_and_only_in_training() -> None:
    layer = make(attention_dropout=0.5)
    x = torch.randn(B, T, D)
    assert not torch.allclose(layer(x)[0], layer(x)[0])
    layer.eval()
    assert torch.equal(layer(x)[0], layer(x)[0])
