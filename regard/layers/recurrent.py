"""Recurrence: torch's LSTM in a residual, in both directions for a source, forwards for a target.

    c_t = f_t ⊙ c_{t-1} + i_t ⊙ g_t,   h_t = o_t ⊙ tanh(c_t)      (Hochreiter & Schmidhuber 1997)

Padding stands behind the sentence, so reading forwards never meets it. For reading backwards the real
part of each row is turned round and the padding stays where it is: no packing is needed, and torch
takes its quickest way. After this file: `regard.models.rnn`.
"""

from typing import ClassVar

import torch
from torch import Tensor, nn

from regard.attention.linear import Linear
from regard.layers.residual import Residual

LSTMState = tuple[Tensor, Tensor]  # h and c, (B, D) each


def turned_round(real: Tensor) -> Tensor:
    """Where to read each place of rows turned round: real (B, S) -> (B · S,), padding left in place.

    >>> turned_round(torch.tensor([[True, True, True], [True, True, False]])).tolist()
    [2, 1, 0, 4, 3, 5]
    """
    rows, length = real.shape
    place = torch.arange(length, device=real.device)
    last = real.sum(1, keepdim=True) - 1  # (B, 1)
    order = torch.where(place <= last, last - place, place)  # (B, S)
    return (order + length * torch.arange(rows, device=real.device)[:, None]).flatten()


def run(lstm: nn.LSTM, x: Tensor, state: LSTMState | None = None) -> tuple[Tensor, LSTMState]:
    """x (B, T, D) from `state` on, None: zeros -> (h (B, T, D), the state after x); in fp32 on a CPU.

    oneDNN trains an LSTM in bf16 on few processors, and ends with an error on the others.
    """
    with torch.autocast(x.device.type, enabled=torch.is_autocast_enabled(x.device.type) and not x.is_cpu):
        x = x.float() if x.is_cpu else x
        before = None if state is None else tuple(part.to(x.dtype)[None].contiguous() for part in state)
        out, (h, c) = lstm(x, before)  # h, c: (1, B, D)
    return out, (h[0], c[0])


@torch.no_grad()
def draw_gates(cell: nn.Module) -> None:
    """The four gates of torch's LSTM, stacked as input, forget, cell, output: orthogonal, gate by gate.

    Forget gates begin open (Jozefowicz et al. 2015).
    """
    for inputs, hidden, *biases in zip(*[iter(cell.parameters())] * 4, strict=True):  # a layer, a direction
        for part in inputs.chunk(4):
            nn.init.xavier_uniform_(part)
        for part in hidden.chunk(4):
            nn.init.orthogonal_(part)
        for bias, open_ in zip(biases, (1.0, 0.0), strict=True):
            nn.init.zeros_(bias).chunk(4)[1].fill_(open_)


class LSTM(nn.LSTM):
    """torch's, with its first weights. Its gates learn as fast by Adam, at less cost (docs/log.md)."""

    matrices: ClassVar = {"": 0}
    draw = draw_gates


class LSTMCell(nn.LSTMCell):
    """The same for one step."""

    matrices: ClassVar = {"": 0}
    draw = draw_gates


class BothWays(nn.Module):
    """One encoder layer: an LSTM forwards, one backwards, joined to D."""

    def __init__(self, d_model: int, *, norm: str, dropout: float) -> None:
        super().__init__()
        self.ahead = LSTM(d_model, d_model, batch_first=True)
        self.back = LSTM(d_model, d_model, batch_first=True)
        self.join = Linear(2 * d_model, d_model)
        self.around = Residual(d_model, norm=norm, dropout=dropout)

    def forward(self, x: Tensor, order: Tensor) -> Tensor:
        """x (B, S, D), and the order that turns its rows round (`turned_round`) -> (B, S, D)."""

        def read(y: Tensor) -> Tensor:
            ahead, _ = run(self.ahead, y)
            back, _ = run(self.back, _take(y, order))
            out: Tensor = self.join(torch.cat([ahead, _take(back, order)], -1))
            return out

        out: Tensor = self.around(x, read)
        return out


class Forwards(nn.Module):
    """One decoder layer; the same code reads a whole target (training) and one token (decoding)."""

    def __init__(self, d_model: int, *, norm: str, dropout: float) -> None:
        super().__init__()
        self.lstm = LSTM(d_model, d_model, batch_first=True)
        self.around = Residual(d_model, norm=norm, dropout=dropout)

    def forward(self, x: Tensor, state: LSTMState) -> tuple[Tensor, LSTMState]:
        """x (B, T, D) from `state` on -> ((B, T, D), the state after x)."""
        after: list[LSTMState] = []

        def read(y: Tensor) -> Tensor:
            out, now = run(self.lstm, y, state)
            after.append(now)
            return out

        return self.around(x, read), after[0]


def _take(x: Tensor, order: Tensor) -> Tensor:
    """x (B, S, D) with its places in another order (B · S,)."""
    return x.flatten(0, 1).index_select(0, order).view(x.shape)
