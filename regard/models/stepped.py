"""Decoders that look at a source, whole or word by word: what a Transformer, an SSRU and convolutions share.

`Taught` runs the layers over a target that is given, `Stepped` one token at a time: each layer remembers
one tensor, however much was written. Before this file: `assembly.py`; after it: the kinds.
"""

from dataclasses import dataclass, replace

from torch import Tensor, nn

from regard.attention.cache import KeyValue
from regard.attention.masks import padding_mask
from regard.data.inputs import Tokens
from regard.layers import Embedding
from regard.models.assembly import Tied, needed_mask, remembered


class Taught(Tied):
    """Source ids in, hidden states of the target out; `project` gives logits."""

    decoder: nn.ModuleList
    decoder_norm: nn.Module

    @property
    def target_embedding(self) -> Embedding:
        """The embedding of what is written."""
        return self.embedding

    def encode(self, inputs: Tokens) -> Tensor:
        """Sources (B, S) -> memory (B, S, D)."""
        raise NotImplementedError

    def forward(self, inputs: Tokens, tgt_in: Tensor) -> Tensor:
        """Teacher forcing: hidden (B, T, D) at each place of tgt_in (B, T) after the sources."""
        memory = self.encode(inputs)
        mask = needed_mask(inputs)
        x = self.target_embedding(tgt_in)
        for layer, seen in zip(self.decoder, remembered(self.decoder, memory), strict=True):
            x, _ = layer(x, seen, memory_mask=mask)
        hidden: Tensor = self.decoder_norm(x)
        return hidden


@dataclass(frozen=True)
class SteppedState:
    """Where a batch of decodings stands; a value, one row a hypothesis."""

    memory: tuple[KeyValue, ...]  # the encoder's keys and values, one a layer: (B, H, S, K)
    memory_mask: Tensor  # (B, 1, 1, S)
    past: tuple[Tensor, ...] = ()  # what each layer remembers: (B, ...)
    length: int = 0  # tokens read so far

    def select(self, rows: Tensor) -> "SteppedState":
        """The given rows, in that order; rows may be repeated or dropped."""
        return SteppedState(
            tuple(layer.select(rows) for layer in self.memory),
            self.memory_mask.index_select(0, rows),
            tuple(layer.index_select(0, rows) for layer in self.past),
            self.length,
        )


class Stepped(Taught):
    """The same, a token at a time."""

    def start(self, inputs: Tokens) -> SteppedState:
        """Run the encoder once; its keys and values serve every step."""
        return SteppedState(remembered(self.decoder, self.encode(inputs)), padding_mask(inputs.real))

    def step(self, ids: Tensor, state: SteppedState) -> tuple[Tensor, SteppedState]:
        """Read the newest ids (B,) and give the logits (B, V) of what comes next."""
        x = self.target_embedding(ids[:, None], state.length)  # (B, 1, D)
        after: list[Tensor] = []
        for i, layer in enumerate(self.decoder):
            past = state.past[i] if state.past else None
            x, now = layer(x, state.memory[i], memory_mask=state.memory_mask, past=past)
            after.append(now)
        logits = self.project(self.decoder_norm(x)[:, 0]).float()
        return logits, replace(state, past=tuple(after), length=state.length + 1)
