"""Self-attention inside the recurrence, on both sides, with attention to the source (Cheng et al. 2016).

Encoder and decoder are LSTM-Ns (`regard.layers.lstmn`); the decoder's state queries the encoder's as in
`rnn.py` (the paper's shallow fusion, 4.1), and [context; state] gives the next word.
"""

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from regard.attention.cache import KeyValue
from regard.attention.linear import Linear
from regard.attention.masks import padding_mask
from regard.attention.site import Site, crossing, reading, writing
from regard.config import Config
from regard.data.inputs import Tokens
from regard.layers.lstmn import Memory, MemoryLSTM
from regard.models.assembly import Tied, closing_norm, heads_for, needed_mask


@dataclass(frozen=True)
class LSTMNState:
    """Where a batch of decodings stands; a value, one row a hypothesis."""

    memory: KeyValue  # the encoder's keys and values (B, H, S, K)
    memory_mask: Tensor | None  # (B, 1, 1, S)
    past: tuple[Memory, ...] = ()  # what each decoder layer has read; empty before the first step

    def select(self, rows: Tensor) -> "LSTMNState":
        """The given rows, in that order; rows may be repeated or dropped."""
        return LSTMNState(
            self.memory.select(rows),
            None if self.memory_mask is None else self.memory_mask.index_select(0, rows),
            tuple(layer.select(rows) for layer in self.past),
        )


class LSTMN(Tied):
    """Source ids in, hidden states of the target out; `project` gives logits."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)  # a recurrence knows order by itself: no positions
        shape = config.model
        self.encoder = nn.ModuleList(_layer(config, reading(i)) for i in range(shape.encoder_layers))
        self.decoder = nn.ModuleList(_layer(config, writing(i)) for i in range(shape.decoder_layers))
        self.encoder_norm, self.decoder_norm = closing_norm(config), closing_norm(config)
        self.cross = heads_for(config, crossing(shape.decoder_layers - 1))
        self.join = Linear(2 * shape.d_model, shape.d_model)
        self.draw_weights(config)

    def encode(self, inputs: Tokens) -> Tensor:
        """Sources (B, S) -> memory (B, S, D). Padding stands behind what is real, which never reads it."""
        x = self.embedding(inputs.ids)
        for layer in self.encoder:
            x, _ = layer(x)
        memory: Tensor = self.encoder_norm(x)
        return memory

    def forward(self, inputs: Tokens, tgt_in: Tensor) -> Tensor:
        """Teacher forcing: hidden (B, T, D) at each place of tgt_in (B, T) after the sources."""
        state = LSTMNState(self.cross.keys_values(self.encode(inputs)), needed_mask(inputs))
        return self._write(self.embedding(tgt_in), state)[0]

    def start(self, inputs: Tokens) -> LSTMNState:
        """Run the encoder once; its keys and values serve every step."""
        return LSTMNState(self.cross.keys_values(self.encode(inputs)), padding_mask(inputs.real))

    def step(self, ids: Tensor, state: LSTMNState) -> tuple[Tensor, LSTMNState]:
        """Read the newest ids (B,) and give the logits (B, V) of what comes next."""
        hidden, state = self._write(self.embedding(ids[:, None]), state)
        return self.project(hidden[:, 0]).float(), state

    def _write(self, x: Tensor, state: LSTMNState) -> tuple[Tensor, LSTMNState]:
        """x (B, T, D) read from `state` on -> (hidden (B, T, D), the state after it)."""
        after: list[Memory] = []
        for i, layer in enumerate(self.decoder):
            x, now = layer(x, state.past[i] if state.past else None)
            after.append(now)
        hidden: Tensor = self.decoder_norm(x)
        context = self.cross(hidden, state.memory, mask=state.memory_mask)
        hidden = self.join(torch.cat([context, hidden], -1)).tanh()
        return hidden, replace(state, past=tuple(after))


def _layer(config: Config, site: Site) -> MemoryLSTM:
    shape = config.model
    return MemoryLSTM(
        shape.d_model,
        shape.n_heads,
        site=site,
        score=config.attention.score,
        norm=shape.norm,
        dropout=shape.dropout,
        attention_dropout=config.attention.dropout,
    )
