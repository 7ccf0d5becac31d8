"""Self-attention inside a recurrence: the LSTM-N, "long short-term memory-network" (Cheng et al. 2016).

    s^t = softmax over i < t of score(W_x x_t + W_h h~_{t-1}, W_k h_i)
    h~_t = Σ s^t_i h_i,   c~_t = Σ s^t_i c_i,   h_t, c_t = LSTM(x_t, h~_t, c~_t)

What an LSTM has of the past, h_{t-1} and c_{t-1}, becomes a look at all of it: nothing is overwritten. The
paper's score is the additive one; here it is `attention.score`, in H heads that each gather their share of
h and c. A loop over the places is inherent. After this file: `regard.models.lstmn`.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.attention.attend import attend, attend_readable
from regard.attention.heads import silence
from regard.attention.linear import Linear
from regard.attention.record import running_tape
from regard.attention.score import build_score
from regard.attention.site import Site
from regard.layers.recurrent import LSTMCell
from regard.layers.residual import Residual


@dataclass(frozen=True)
class Memory:
    """All that was read: a value that is handed from step to step."""

    places: Tensor  # (B, H, S, 3K): keys, hidden states, cells
    looked: Tensor  # (B, D): h~, what was gathered last

    def select(self, rows: Tensor) -> "Memory":
        """The given rows, in that order."""
        return Memory(self.places.index_select(0, rows), self.looked.index_select(0, rows))


class MemoryLSTM(nn.Module):
    """One layer; the same code reads a whole sequence and one token more."""

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        site: Site,
        score: str,
        norm: str,
        dropout: float,
        attention_dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.site, self.n_heads, self.dropout = site, n_heads, attention_dropout
        self.query = Linear(d_model, d_model)
        self.query_looked = Linear(d_model, d_model, bias=False)
        self.key = Linear(d_model, d_model)
        self.score = build_score(score, n_heads, d_model // n_heads)
        self.cell = LSTMCell(d_model, d_model)
        self.around = Residual(d_model, norm=norm, dropout=dropout)

    def forward(self, x: Tensor, past: Memory | None = None) -> tuple[Tensor, Memory]:
        """x (B, T, D) after `past` -> ((B, T, D), past with x)."""
        after: list[Memory] = []

        def read(y: Tensor) -> Tensor:
            out, memory = self._read(y, past or self._nothing(y))
            after.append(memory)
            return out

        return self.around(x, read), after[0]

    def _nothing(self, x: Tensor) -> Memory:
        """The memory before the first place."""
        rows, width = x.shape[0], x.shape[2]
        return Memory(x.new_zeros(rows, self.n_heads, 0, 3 * width // self.n_heads), x.new_zeros(rows, width))

    def _read(self, x: Tensor, past: Memory) -> tuple[Tensor, Memory]:
        """The loop: x (B, T, D) -> (h (B, T, D), past with x)."""
        places, looked = past.places, past.looked
        hidden: list[Tensor] = []
        weights: list[Tensor] = []
        for y, query in zip(x.unbind(1), self.query(x).unbind(1), strict=True):  # (B, D) each
            q = (query + self.query_looked(looked)).view(len(y), self.n_heads, 1, -1)  # (B, H, 1, K)
            looked, cells = self._look(q, places, weights)
            h, c = self.cell(y, (looked, cells))
            new = [part.view(len(y), self.n_heads, 1, -1) for part in (self.key(h), h, c)]
            places = torch.cat([places, torch.cat(new, -1)], 2)  # (B, H, S + 1, 3K)
            hidden.append(h)
        if (tape := running_tape()) is not None:
            end = places.shape[2]
            tape.add(self.site, torch.cat([F.pad(row, (0, end - row.shape[-1])) for row in weights], 2))
        return torch.stack(hidden, 1), Memory(places, looked)

    def _look(self, q: Tensor, places: Tensor, weights: list[Tensor]) -> tuple[Tensor, Tensor]:
        """What q (B, H, 1, K) gathers of the hidden states and of the cells: (B, D) each."""
        width = q.shape[-1]
        k, v = places[..., :width], places[..., width:]
        dropout = self.dropout if self.training else 0.0
        if running_tape() is None:
            gathered = attend(q, k, v, score=self.score, dropout=dropout)
        else:
            gathered, row = attend_readable(q, k, v, score=self.score, dropout=dropout)
            weights.append(row)
        hidden, cells = silence(gathered, self.site.name).chunk(2, -1)  # (B, H, 1, K) each
        return hidden.flatten(1), cells.flatten(1)
