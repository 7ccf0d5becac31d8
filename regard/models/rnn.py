"""What came before the Transformer: LSTMs that read and write (Sutskever et al. 2014), with attention
(Bahdanau et al. 2015) as `model.kind=rnn-attention` or without as `rnn`.

Encoder layers read both ways. The decoder starts from where they end. With attention, at each step the
decoder's state queries the encoder's, and [context; state] gives the next word; without, the state alone:

    c_t = attention(s_t, memory),   hidden_t = tanh(W [c_t; s_t])

The state that queries is the one that has read the newest word (Luong et al. 2015, 3.1), so no step waits
for the context of the one before, and training runs torch's LSTM over a whole target at once.
`attention.score=additive` is Bahdanau's form; every other score is the query-key-value form.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from regard.attention.cache import KeyValue
from regard.attention.linear import Linear
from regard.attention.masks import padding_mask
from regard.attention.site import crossing
from regard.config import Config
from regard.data.inputs import Tokens
from regard.layers.recurrent import BothWays, Forwards, LSTMState, turned_round
from regard.models.assembly import Tied, closing_norm, heads_for, needed_mask


@dataclass(frozen=True)
class RNNState:
    """Where a batch of decodings stands; a value, one row a hypothesis."""

    layers: tuple[LSTMState, ...]  # h and c of each decoder layer, (B, D) each
    memory: KeyValue | None  # the encoder's keys and values (B, H, S, K); None without attention
    memory_mask: Tensor | None  # (B, 1, 1, S)

    def select(self, rows: Tensor) -> "RNNState":
        """The given rows, in that order; rows may be repeated or dropped."""
        return RNNState(
            tuple((h.index_select(0, rows), c.index_select(0, rows)) for h, c in self.layers),
            None if self.memory is None else self.memory.select(rows),
            None if self.memory_mask is None else self.memory_mask.index_select(0, rows),
        )


class RNN(Tied):
    """Source ids in, hidden states of the target out; `project` gives logits."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)  # a recurrence knows order by itself: no positions
        shape = config.model
        d_model, last = shape.d_model, shape.decoder_layers - 1
        self.encoder = nn.ModuleList(
            BothWays(d_model, norm=shape.norm, dropout=shape.dropout) for _ in range(shape.encoder_layers)
        )
        self.decoder = nn.ModuleList(
            Forwards(d_model, norm=shape.norm, dropout=shape.dropout) for _ in range(shape.decoder_layers)
        )
        self.encoder_norm, self.decoder_norm = closing_norm(config), closing_norm(config)
        self.bridge = Linear(2 * d_model, 2 * shape.decoder_layers * d_model)
        # A state holds the word just read; with tied embeddings it would ask for it again, but for W.
        attends = shape.kind == "rnn-attention"
        self.cross = heads_for(config, crossing(last)) if attends else None
        self.join = Linear((1 + attends) * d_model, d_model)
        self.draw_weights(config)

    def encode(self, inputs: Tokens) -> Tensor:
        """Sources (B, S) -> memory (B, S, D)."""
        x, order = self.embedding(inputs.ids), turned_round(inputs.real)
        for layer in self.encoder:
            x = layer(x, order)
        memory: Tensor = self.encoder_norm(x)
        return memory

    def forward(self, inputs: Tokens, tgt_in: Tensor) -> Tensor:
        """Teacher forcing: hidden (B, T, D) at each place of tgt_in (B, T) after the sources."""
        state = self._begin(inputs, needed_mask(inputs))
        return self._write(self.embedding(tgt_in), state)[0]

    def start(self, inputs: Tokens) -> RNNState:
        """Run the encoder once; what it found serves every step."""
        return self._begin(inputs, padding_mask(inputs.real))

    def step(self, ids: Tensor, state: RNNState) -> tuple[Tensor, RNNState]:
        """Read the newest ids (B,) and give the logits (B, V) of what comes next."""
        hidden, state = self._write(self.embedding(ids[:, None]), state)
        return self.project(hidden[:, 0]).float(), state

    def _begin(self, inputs: Tokens, mask: Tensor | None) -> RNNState:
        """The state before the first word: h = tanh(W e), c = W' e.

        e is the memory at both ends of the sentence: one direction has read all of it at its last place, the
        other at its first.
        """
        memory = self.encode(inputs)
        rows, last = torch.arange(len(inputs), device=inputs.device), inputs.real.sum(1) - 1
        ends = torch.cat([memory[:, 0], memory[rows, last]], -1)  # (B, 2D)
        first, second = self.bridge(ends).chunk(2, -1)  # (B, N · D) each
        n = len(self.decoder)
        layers = zip(first.tanh().chunk(n, -1), second.chunk(n, -1), strict=True)
        seen = None if self.cross is None else self.cross.keys_values(memory)
        return RNNState(tuple(layers), seen, None if self.cross is None else mask)

    def _write(self, x: Tensor, state: RNNState) -> tuple[Tensor, RNNState]:
        """x (B, T, D) read from `state` on -> (hidden (B, T, D), the state after it)."""
        after: list[LSTMState] = []
        for layer, before in zip(self.decoder, state.layers, strict=True):
            x, now = layer(x, before)
            after.append(now)
        x = self.decoder_norm(x)
        if self.cross is not None and state.memory is not None:
            x = torch.cat([self.cross(x, state.memory, mask=state.memory_mask), x], -1)  # [context; state]
        return self.join(x).tanh(), replace(state, layers=tuple(after))
