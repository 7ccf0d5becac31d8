"""Word windows: a convolutional encoder and decoder with attention to the source (Gehring et al. 2017).

Every decoder layer looks at the source. ConvS2S adds the embeddings to queries and values by hand; here
they arrive there by the residuals, which carry them through every layer. What a position says is added to
the embeddings (`positions.kind`). `model.kernel` is the width of a window.
"""

from dataclasses import dataclass, replace

from torch import Tensor, nn

from regard.attention.cache import KeyValue
from regard.attention.masks import padding_mask
from regard.attention.positions import build_positions
from regard.attention.site import crossing
from regard.config import Config
from regard.data.inputs import Tokens
from regard.layers.convolution import ConvolutionDecoderLayer, ConvolutionEncoderLayer
from regard.models.assembly import Tied, closing_norm, heads_for, needed_mask, remembered


@dataclass(frozen=True)
class ConvolutionState:
    """Where a batch of decodings stands; a value, one row a hypothesis."""

    memory: tuple[KeyValue, ...]  # the encoder's keys and values, one a layer: (B, H, S, K)
    memory_mask: Tensor  # (B, 1, 1, S)
    past: tuple[Tensor, ...] = ()  # what each layer's next window begins with: (B, k - 1, D)
    length: int = 0  # tokens read so far

    def select(self, rows: Tensor) -> "ConvolutionState":
        """The given rows, in that order; rows may be repeated or dropped."""
        return ConvolutionState(
            tuple(layer.select(rows) for layer in self.memory),
            self.memory_mask.index_select(0, rows),
            tuple(layer.index_select(0, rows) for layer in self.past),
            self.length,
        )


class Convolution(Tied):
    """Source ids in, hidden states of the target out; `project` gives logits."""

    def __init__(self, config: Config) -> None:
        shape = config.model
        super().__init__(config, build_positions(config.positions, shape.d_model))
        self.encoder = nn.ModuleList(
            ConvolutionEncoderLayer(shape.d_model, shape.kernel, norm=shape.norm, dropout=shape.dropout)
            for _ in range(shape.encoder_layers)
        )
        self.decoder = nn.ModuleList(
            ConvolutionDecoderLayer(
                heads_for(config, crossing(i)),
                shape.d_model,
                shape.kernel,
                norm=shape.norm,
                dropout=shape.dropout,
            )
            for i in range(shape.decoder_layers)
        )
        self.encoder_norm, self.decoder_norm = closing_norm(config), closing_norm(config)
        self.draw_weights(config)

    def encode(self, inputs: Tokens) -> Tensor:
        """Sources (B, S) -> memory (B, S, D)."""
        x = self.embedding(inputs.ids)
        real = None if needed_mask(inputs) is None else inputs.mask
        for layer in self.encoder:
            x = layer(x, real)
        memory: Tensor = self.encoder_norm(x)
        return memory

    def forward(self, inputs: Tokens, tgt_in: Tensor) -> Tensor:
        """Teacher forcing: hidden (B, T, D) at each place of tgt_in (B, T) after the sources."""
        memory = self.encode(inputs)
        mask = needed_mask(inputs)
        x = self.embedding(tgt_in)
        for layer, seen in zip(self.decoder, remembered(self.decoder, memory), strict=True):
            x, _ = layer(x, seen, memory_mask=mask)
        hidden: Tensor = self.decoder_norm(x)
        return hidden

    def start(self, inputs: Tokens) -> ConvolutionState:
        """Run the encoder once; its keys and values serve every step."""
        return ConvolutionState(remembered(self.decoder, self.encode(inputs)), padding_mask(inputs.real))

    def step(self, ids: Tensor, state: ConvolutionState) -> tuple[Tensor, ConvolutionState]:
        """Read the newest ids (B,) and give the logits (B, V) of what comes next."""
        x = self.embedding(ids[:, None], state.length)  # (B, 1, D)
        after: list[Tensor] = []
        for i, layer in enumerate(self.decoder):
            past = state.past[i] if state.past else None
            x, now = layer(x, state.memory[i], memory_mask=state.memory_mask, past=past)
            after.append(now)
        logits = self.project(self.decoder_norm(x)[:, 0]).float()
        return logits, replace(state, past=tuple(after), length=state.length + 1)
