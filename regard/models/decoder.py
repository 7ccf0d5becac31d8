"""The decoder alone: each place sees itself and what stands before it (Radford et al. 2019).

Training calls it on whole rows. Decoding gives `start` the prompts without their last tokens, padded in front
where they are of unequal length, and `step` the last tokens first: from there on rows go on side by side, and
none knows what its neighbours began with. The Transformer's layers, without a memory to look at.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.attention.cache import KeyValue
from regard.attention.masks import padding_mask
from regard.attention.positions import build_positions
from regard.config import Config
from regard.data.inputs import Tokens
from regard.layers.embedding import Bigrams
from regard.models.assembly import Tied, closing_norm, decoder_layers, own_output


@dataclass(frozen=True)
class DecoderState:
    """Where a batch of decodings stands; a value, one row a hypothesis."""

    past: tuple[KeyValue, ...] = ()  # one a layer: (B, H, T, K); empty before the first place
    real: Tensor | None = None  # (B, T) what of the past is no padding; None: all of it
    last: Tensor | None = None  # (B, 1) what was read last, where the model has bigrams

    @property
    def length(self) -> int:
        """Columns read so far."""
        return self.past[0].end if self.past else 0

    def select(self, rows: Tensor) -> "DecoderState":
        """The given rows, in that order; rows may be repeated or dropped."""
        real = None if self.real is None else self.real.index_select(0, rows)
        last = None if self.last is None else self.last.index_select(0, rows)
        return DecoderState(tuple(layer.select(rows) for layer in self.past), real, last)


class Decoder(Tied):
    """Ids in, hidden states out; `project` gives logits."""

    native = "decoder"
    matrices: ClassVar = {"own_output": 0}  # a vector a token

    def __init__(self, config: Config) -> None:
        shape = config.model
        positions = build_positions(config.positions, shape.d_model)
        super().__init__(config, positions)
        self.own_output = own_output(config, shape.vocab_size)
        self.bigrams = Bigrams(shape.bigrams, shape.d_model) if shape.bigrams else None
        self.decoder = decoder_layers(config, cross=False)
        self.decoder_norm = closing_norm(config)
        self.draw_weights(config)

    @property
    def output_weight(self) -> Tensor:
        """The output layer's matrix (V, D): the embeddings', unless it has its own (`model.tied`)."""
        return self.embedding.weight if self.own_output is None else self.own_output

    def project(self, hidden: Tensor) -> Tensor:
        """hidden (..., D) -> logits (..., V)."""
        return F.linear(hidden, self.output_weight)

    def forward(self, inputs: Tokens) -> Tensor:
        """Rows (B, T), padded at their ends -> hidden (B, T, D); each place has seen what stands up to it."""
        return self._read(inputs.ids, DecoderState())[0]

    def start(self, inputs: Tokens) -> DecoderState:
        """Read the prompts but for their last tokens; there may be nothing to read."""
        if inputs.ids.shape[1] == 0:
            return DecoderState()
        return self._read(inputs.ids, DecoderState(), inputs.mask)[1]

    def step(self, ids: Tensor, state: DecoderState) -> tuple[Tensor, DecoderState]:
        """Read the newest ids (B,) and give the logits (B, V) of what comes next."""
        hidden, state = self._read(ids[:, None], state)
        return self.project(hidden[:, -1]).float(), state

    def _read(
        self, ids: Tensor, state: DecoderState, mask: Tensor | None = None
    ) -> tuple[Tensor, DecoderState]:
        """ids (B, T) after `state`, real where mask (B, T) says so -> (hidden (B, T, D), the state then)."""
        real = state.real
        if mask is not None or real is not None:
            before = torch.ones_like(ids[:, :0], dtype=torch.bool) if real is None else real
            now = torch.ones_like(ids, dtype=torch.bool) if mask is None else mask
            real = torch.cat([before, now], 1)
        # A row counts its places from its own first token: what is padding in front of it is no place.
        offset = state.length if real is None else state.length - real.int().argmax(1)
        x, last = self.embedding(ids, offset), None
        if self.bigrams is not None:
            read = ids if mask is None else ids.masked_fill(~mask, 0)
            before = torch.zeros_like(ids[:, :1]) if state.last is None else state.last
            x, last = x + self.bigrams(torch.cat([before, read[:, :-1]], 1), read), read[:, -1:]
        past: list[KeyValue] = []
        seen = None if real is None else padding_mask(real)
        for i, layer in enumerate(self.decoder):
            x, own = layer(x, past=state.past[i] if state.past else None, mask=seen)
            past.append(own)
        return self.decoder_norm(x), replace(state, past=tuple(past), real=real, last=last)
