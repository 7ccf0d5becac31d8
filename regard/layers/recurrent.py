"""Recurrence: torch's LSTM in a residual, in both directions for a source, forwards for a target.

    c_t = f_t ⊙ c_{t-1} + i_t ⊙ g_t,   h_t = o_t ⊙ tanh(c_t)      (Hochreiter & Schmidhuber 1997)

Padding stands behind the sentence, so reading forwards never meets it. For reading backwards the real
part of each row is turned round and the padding stays where it is: no packing is needed, and torch
takes its quickest way. After this file: `regard.models.rnn`.
"""

import torch
from torch import Tensor, nn

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


class BothWays(nn.Module):
    """One encoder layer: an LSTM forwards, one backwards, joined to D."""

    def __init__(self, d_model: int, *, norm: str, dropout: float) -> None:
        super().__init__()
        self.ahead = nn.LSTM(d_model, d_model, batch_first=True)
        self.back = nn.LSTM(d_model, d_model, batch_first=True)
        self.join = nn.Linear(2 * d_model, d_model)
        self.around = Residual(d_model, norm=norm, dropout=dropout)

    def forward(self, x: Tensor, real: Tensor) -> tuple[Tensor, Tensor]:
        """x (B, S, D), real where real (B, S) -> ((B, S, D), where both directions end (B, 2D))."""
        order = turned_round(real)
        ends: list[Tensor] = []

        def read(y: Tensor) -> Tensor:
            ahead, _ = self.ahead(y)
            back = _take(self.back(_take(y, order))[0], order)
            last = (real.sum(1) - 1).clamp(min=0)
            ends.append(torch.cat([ahead[torch.arange(len(last), device=y.device), last], back[:, 0]], -1))
            out: Tensor = self.join(torch.cat([ahead, back], -1))
            return out

        return self.around(x, read), ends[0]


class Forwards(nn.Module):
    """One decoder layer; the same code reads a whole target (training) and one token (decoding)."""

    def __init__(self, d_model: int, *, norm: str, dropout: float) -> None:
        super().__init__()
        self.lstm = nn.LSTM(d_model, d_model, batch_first=True)
        self.around = Residual(d_model, norm=norm, dropout=dropout)

    def forward(self, x: Tensor, state: LSTMState) -> tuple[Tensor, LSTMState]:
        """x (B, T, D) from `state` on -> ((B, T, D), the state after x)."""
        after: list[LSTMState] = []

        def read(y: Tensor) -> Tensor:
            h, c = (part.to(y.dtype)[None].contiguous() for part in state)  # (1, B, D)
            out: Tensor
            out, (h, c) = self.lstm(y, (h, c))
            after.append((h[0], c[0]))
            return out

        return self.around(x, read), after[0]


def _take(x: Tensor, order: Tensor) -> Tensor:
    """x (B, S, D) with its places in another order (B · S,)."""
    return x.flatten(0, 1).index_select(0, order).view(x.shape)
