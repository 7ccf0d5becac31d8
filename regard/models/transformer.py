"""The Transformer: encoder, decoder, tied embeddings (Vaswani et al. 2017).

The matrices may also be apart and the output may have a bias, as imported models have it. Training
calls it whole, with the target shifted by one (teacher forcing). Decoding calls `start` once a batch
and `step` once a token; both run the same layers.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.attention.cache import KeyValue
from regard.attention.masks import padding_mask
from regard.attention.positions import Positions, build_positions, build_source
from regard.attention.structural import Trees
from regard.config import Config
from regard.data.inputs import Tokens
from regard.layers import Embedding
from regard.models.assembly import (
    Tied,
    closing_norm,
    decoder_layers,
    encoder_stack,
    needed_mask,
    own_output,
    remembered,
    shorter,
)
from regard.models.stepped import Taught


@dataclass(frozen=True)
class TransformerState:
    """Where a batch of decodings stands; a value, one row a hypothesis."""

    memory: tuple[KeyValue, ...]  # the encoder's keys and values, one a layer: (B, H, S, K)
    memory_mask: Tensor  # (B, 1, 1, S)
    past: tuple[KeyValue, ...]  # the decoder's own, one a layer: (B, H, T, K); empty before the first step

    @property
    def length(self) -> int:
        """Tokens read so far."""
        return self.past[0].end if self.past else 0

    def select(self, rows: Tensor) -> "TransformerState":
        """The given rows, in that order; rows may be repeated or dropped."""
        return TransformerState(
            tuple(layer.select(rows) for layer in self.memory),
            self.memory_mask.index_select(0, rows),
            tuple(layer.select(rows) for layer in self.past),
        )


class EncoderDecoder(Tied):
    """What reads a source, and the layers that write; how they write is said by who has them."""

    matrices: ClassVar = {"own_output": 0}  # a vector a token
    causal: ClassVar[bool] = True  # what is written looks back alone

    def __init__(self, config: Config) -> None:
        shape = config.model
        positions = build_positions(config.positions, shape.d_model)
        super().__init__(config, positions)
        self._untie(config, positions)
        self.source_positions = build_source(config.positions, shape.d_model)
        self.encoder, bound = encoder_stack(config)
        self.max_length = shorter(self.max_length, bound)
        self.decoder = self.build_decoder(config)
        self.encoder_norm, self.decoder_norm = closing_norm(config), closing_norm(config)
        self.build_more(config)
        self.draw_weights(config)

    def build_decoder(self, config: Config) -> nn.ModuleList:
        """The layers that write."""
        return decoder_layers(config, cross=True, causal=self.causal)

    def build_more(self, config: Config) -> None:
        """Whatever a kind has beside these; nothing here."""

    def _untie(self, config: Config, positions: Positions) -> None:
        """The matrices that are not one with the source's, and the bias of the output (`model.tied`)."""
        shape = config.model
        size = shape.target_vocab_size or shape.vocab_size
        self.own_target = (
            Embedding(
                size, shape.d_model, positions=positions, dropout=shape.dropout, scaled=shape.scale_embedding
            )
            if shape.tied in ("target", "none")
            else None
        )
        self.own_output = own_output(config, size)
        self.output_bias = nn.Parameter(torch.zeros(size)) if shape.output_bias else None

    @property
    def target_embedding(self) -> Embedding:
        """The embedding of what is written; the source's own where they are tied."""
        return self.embedding if self.own_target is None else self.own_target

    @property
    def output_weight(self) -> Tensor:
        """The output layer's matrix (V, D)."""
        return self.target_embedding.weight if self.own_output is None else self.own_output

    def project(self, hidden: Tensor) -> Tensor:
        """hidden (..., D) -> logits (..., V)."""
        return F.linear(hidden, self.output_weight, self.output_bias)

    def encode(self, inputs: Tokens) -> Tensor:
        """Sources (B, S) -> memory (B, S, D)."""
        places = None if inputs.heads is None else Trees.of(inputs.heads)
        x = self.source_positions.embed(self.embedding(inputs.ids), places=places)
        mask = needed_mask(inputs)
        for layer in self.encoder:
            x = layer(x, mask, places)
        memory: Tensor = self.encoder_norm(x)
        return memory


class Transformer(EncoderDecoder, Taught):
    """Source ids in, hidden states of the target out; `project` gives logits."""

    native = "encoder and decoder"

    def start(self, inputs: Tokens) -> TransformerState:
        """Run the encoder once; its keys and values serve every step."""
        memory = self.encode(inputs)
        return TransformerState(remembered(self.decoder, memory), padding_mask(inputs.real), ())

    def step(self, ids: Tensor, state: TransformerState) -> tuple[Tensor, TransformerState]:
        """Read the newest ids (B,) and give the logits (B, V) of what comes next."""
        x = self.target_embedding(ids[:, None], state.length)  # (B, 1, D)
        past: list[KeyValue] = []
        for i, layer in enumerate(self.decoder):
            x, seen = layer(
                x,
                state.memory[i],
                memory_mask=state.memory_mask,
                past=state.past[i] if state.past else None,
            )
            past.append(seen)
        logits = self.project(self.decoder_norm(x)[:, 0]).float()
        return logits, replace(state, past=tuple(past))


def count_parameters(model: nn.Module) -> int:
    """Numbers that training changes."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


__all__ = ["EncoderDecoder", "Transformer", "TransformerState", "count_parameters"]
