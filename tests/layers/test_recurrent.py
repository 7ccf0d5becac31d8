"""Recurrence: against torch's own bidirectional LSTM on packed sequences, and a loop over LSTMCell."""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from regard.layers.recurrent import BothWays, Forwards, turned_round

B, S, D = 3, 7, 5
LENGTHS = torch.tensor([4, 7, 1])


def test_turning_round_twice_gives_the_order_back() -> None:
    order = turned_round(torch.arange(S) < LENGTHS[:, None])
    assert torch.equal(order[order], torch.arange(B * S))


def test_both_ways_equals_torchs_packed_bidirectional_lstm() -> None:
    torch.manual_seed(0)
    layer, oracle = BothWays(D, norm="post", dropout=0.0), nn.LSTM(D, D, batch_first=True, bidirectional=True)
    with torch.no_grad():
        for ours, suffix in ((layer.ahead, ""), (layer.back, "_reverse")):
            for name, weight in ours.named_parameters():
                getattr(oracle, name + suffix).copy_(weight)
    x, real = torch.randn(B, S, D), torch.arange(S) < LENGTHS[:, None]
    out = layer(x, turned_round(real))
    packed = pack_padded_sequence(x, LENGTHS, batch_first=True, enforce_sorted=False)
    found, _ = oracle(packed)
    states, _ = pad_packed_sequence(found, batch_first=True)
    expected = layer.around.norm(x + layer.join(states))
    torch.testing.assert_close(out[real], expected[real])


def test_forwards_equals_a_loop_over_the_cell() -> None:
    torch.manual_seed(0)
    layer, cell = Forwards(D, norm="pre", dropout=0.0), nn.LSTMCell(D, D)
    with torch.no_grad():
        for name, weight in layer.lstm.named_parameters():
            getattr(cell, name.removesuffix("_l0")).copy_(weight)
    x, h, c = torch.randn(B, S, D), torch.randn(B, D), torch.randn(B, D)
    out, after = layer(x, (h, c))
    for t in range(S):
        h, c = cell(layer.around.norm(x[:, t]), (h, c))
        torch.testing.assert_close(out[:, t], x[:, t] + h)
    torch.testing.assert_close(after, (h, c))


def test_forwards_goes_on_where_it_stopped() -> None:
    torch.manual_seed(0)
    layer = Forwards(D, norm="pre", dropout=0.0)
    x, nothing = torch.randn(B, S, D), (torch.zeros(B, D), torch.zeros(B, D))
    whole, end = layer(x, nothing)
    first, middle = layer(x[:, :3], nothing)
    second, after = layer(x[:, 3:], middle)
    torch.testing.assert_close(torch.cat([first, second], 1), whole)
    torch.testing.assert_close(after, end)
