"""A Transformer whose decoder has a recurrence where self-attention was: `model.kind=ssru`.

The small translators of Firefox are of this kind (Bogoychev et al. 2020; `regard.interop.bergamot` reads
them). The encoder is the Transformer's; a step of the decoder costs the same however much has been written.
Before this file: `regard.layers.ssru`.
"""

from dataclasses import dataclass, replace

from torch import Tensor, nn

from regard.attention.cache import KeyValue
from regard.attention.masks import padding_mask
from regard.attention.site import crossing
from regard.config import Config
from regard.data.inputs import Tokens
from regard.layers.ssru import SSRULayer
from regard.models.assembly import heads_for, needed_mask, remembered
from regard.models.transformer import EncoderDecoder


@dataclass(frozen=True)
class SSRUState:
    """Where a batch of decodings stands; a value, one row a hypothesis."""

    memory: tuple[KeyValue, ...]  # the encoder's keys and values, one a layer: (B, H, S, K)
    memory_mask: Tensor  # (B, 1, 1, S)
    past: tuple[Tensor, ...] = ()  # what each layer remembers: (B, D)
    length: int = 0  # tokens read so far

    def select(self, rows: Tensor) -> "SSRUState":
        """The given rows, in that order; rows may be repeated or dropped."""
        return SSRUState(
            tuple(layer.select(rows) for layer in self.memory),
            self.memory_mask.index_select(0, rows),
            tuple(layer.index_select(0, rows) for layer in self.past),
            self.length,
        )


class SSRUTransformer(EncoderDecoder):
    """Source ids in, hidden states of the target out; `project` gives logits."""

    native = "encoder and decoder recurrent"

    def build_decoder(self, config: Config) -> nn.ModuleList:
        """Layers with the recurrence."""
        shape = config.model
        return nn.ModuleList(
            SSRULayer(
                heads_for(config, crossing(i)),
                shape.d_model,
                shape.decoder_d_ff or shape.d_ff,
                norm=shape.norm,
                dropout=shape.dropout,
                activation=shape.activation,
            )
            for i in range(shape.decoder_layers)
        )

    def forward(self, inputs: Tokens, tgt_in: Tensor) -> Tensor:
        """Teacher forcing: hidden (B, T, D) at each place of tgt_in (B, T) after the sources."""
        memory = self.encode(inputs)
        mask = needed_mask(inputs)
        x = self.target_embedding(tgt_in)
        for layer, seen in zip(self.decoder, remembered(self.decoder, memory), strict=True):
            x, _ = layer(x, seen, memory_mask=mask)
        hidden: Tensor = self.decoder_norm(x)
        return hidden

    def start(self, inputs: Tokens) -> SSRUState:
        """Run the encoder once; its keys and values serve every step."""
        return SSRUState(remembered(self.decoder, self.encode(inputs)), padding_mask(inputs.real))

    def step(self, ids: Tensor, state: SSRUState) -> tuple[Tensor, SSRUState]:
        """Read the newest ids (B,) and give the logits (B, V) of what comes next."""
        x = self.target_embedding(ids[:, None], state.length)  # (B, 1, D)
        after: list[Tensor] = []
        for i, layer in enumerate(self.decoder):
            past = state.past[i] if state.past else None
            x, now = layer(x, state.memory[i], memory_mask=state.memory_mask, past=past)
            after.append(now)
        logits = self.project(self.decoder_norm(x)[:, 0]).float()
        return logits, replace(state, past=tuple(after), length=state.length + 1)
