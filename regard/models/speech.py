"""Frames in, characters out: an encoder that hears, a decoder that writes, and CTC beside it.

    frames -> `layers/subsampling` -> encoder (attention, windows or recurrence) -> memory (B, S, D)
    memory -> decoder with cross-attention -> what is written, one token at a time
    memory -> W + b -> at every place a token or none: CTC (Graves et al. 2006; Hori et al. 2017)

With `attention.kind=local` a place hears `attention.ahead` places ahead in each layer, so that the whole
look-ahead is a number (`hears_ahead`). Whisper is this model with other settings. After this file:
`regard.tasks.speech`.
"""

from dataclasses import replace
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from regard.attention.absolute import Learned
from regard.attention.cache import KeyValue
from regard.attention.linear import Linear
from regard.attention.masks import padding_mask
from regard.attention.positions import build_positions
from regard.config import Config
from regard.config.speech import SpeechConfig
from regard.data.inputs import Frames
from regard.layers.convolution import ConvolutionEncoderLayer
from regard.layers.recurrent import BothWays, turned_round
from regard.layers.subsampling import Subsampling
from regard.models.assembly import Tied, closing_norm, decoder_layers, encoder_stack, remembered
from regard.models.transformer import TransformerState

MOST_HEARD = 1500  # places that learned positions of the encoder hold, as Whisper has them


class Speech(Tied):
    """Frames in, hidden states of the text out; `project` gives logits."""

    native = "encoder and decoder heard"
    matrices: ClassVar = {"heard": 0}

    def __init__(self, config: Config) -> None:
        shape, how = config.model, config.of(SpeechConfig)
        super().__init__(config, build_positions(config.positions, shape.d_model))
        self.stride = how.subsampling or 4
        self.front = Subsampling(
            how.front, how.mels, shape.d_model, stride=self.stride, channels=how.channels
        )
        learned = config.positions.kind == "learned"
        self.source_positions = (
            Learned(shape.d_model, MOST_HEARD)
            if learned
            else build_positions(config.positions, shape.d_model)
        )
        self.kind = how.encoder
        self.encoder = self._encoder(config)
        self.encoder_norm, self.decoder_norm = closing_norm(config), closing_norm(config)
        self.decoder = decoder_layers(config, cross=True)
        self.ctc = Linear(shape.d_model, shape.vocab_size) if how.ctc > 0 else None
        self.draw_weights(config)

    def _encoder(self, config: Config) -> nn.ModuleList:
        shape = config.model
        if self.kind == "attention":
            return encoder_stack(config)[0]
        options = {"norm": shape.norm, "dropout": shape.dropout}
        return nn.ModuleList(
            ConvolutionEncoderLayer(shape.d_model, shape.kernel, **options)  # type: ignore[arg-type]
            if self.kind == "conv"
            else BothWays(shape.d_model, **options)  # type: ignore[arg-type]
            for _ in range(shape.encoder_layers)
        )

    @property
    def most_heard(self) -> int | None:
        """Places that its encoder can hold; None: any."""
        return self.source_positions.max_length

    def reach(self) -> tuple[int, int] | None:
        """Places before and after its own that the memory of a place depends on; None: on all."""
        if self.source_positions.max_length is not None or self.kind == "recurrent":
            return None
        layers: Any = self.encoder
        if self.kind == "conv":
            widths = [layer.window.kernel - 1 for layer in layers]
            return sum(width // 2 for width in widths), sum((width + 1) // 2 for width in widths)
        kernels = [layer.attention.kernel for layer in layers]
        if not all(kernel.windowed for kernel in kernels):
            return None
        return sum(kernel.window for kernel in kernels), sum(kernel.ahead for kernel in kernels)

    def hears_ahead(self) -> int | None:
        """Frames after the first one of a place that its memory depends on; None: all."""
        reach = self.reach()
        return None if reach is None else reach[1] * self.stride + self.front.reach

    def encode(self, inputs: Frames) -> tuple[Tensor, Tensor | None]:
        """Frames (B, T, mels) -> memory (B, S, D), and where it is real (B, S); None: everywhere."""
        mask = inputs.mask
        x, real = self.front(inputs.values, None if mask is None or bool(mask.all()) else mask)
        x = self.source_positions.embed(x)
        if self.kind == "recurrent":
            every = x.new_ones(x.shape[:2], dtype=torch.bool) if real is None else real
            second = turned_round(every)
        else:
            second = real if self.kind == "conv" or real is None else padding_mask(real)
        for layer in self.encoder:
            x = layer(x, second)
        return self.encoder_norm(x), real

    def begin(self, memory: Tensor, real: Tensor | None = None) -> TransformerState:
        """The state before the first token, of memory (B, S, D) that is real where (B, S) says so."""
        real = memory.new_ones(memory.shape[:2], dtype=torch.bool) if real is None else real
        return TransformerState(remembered(self.decoder, memory), padding_mask(real), ())

    def start(self, inputs: Frames) -> TransformerState:
        """Run the encoder once; its keys and values serve every step."""
        return self.begin(*self.encode(inputs))

    def write(self, memory: Tensor, real: Tensor | None, tgt_in: Tensor) -> Tensor:
        """Teacher forcing: hidden (B, T, D) at each place of tgt_in (B, T) after the memory."""
        x = self.embedding(tgt_in)
        mask = None if real is None else padding_mask(real)
        for layer, seen in zip(self.decoder, remembered(self.decoder, memory), strict=True):
            x, _ = layer(x, seen, memory_mask=mask)
        hidden: Tensor = self.decoder_norm(x)
        return hidden

    def forward(self, inputs: Frames, tgt_in: Tensor) -> Tensor:
        """Hidden (B, T, D) at each place of tgt_in (B, T) after the frames."""
        return self.write(*self.encode(inputs), tgt_in)

    def step(self, ids: Tensor, state: TransformerState) -> tuple[Tensor, TransformerState]:
        """Read the newest ids (B,) and give the logits (B, V) of what comes next."""
        return self.read(ids[:, None], state)

    def read(self, ids: Tensor, state: TransformerState) -> tuple[Tensor, TransformerState]:
        """Read ids (B, T), a prompt or one token, and give the logits (B, V) of what comes after."""
        x = self.embedding(ids, state.length)
        past: list[KeyValue] = []
        for i, layer in enumerate(self.decoder):
            before = state.past[i] if state.past else None
            x, seen = layer(x, state.memory[i], memory_mask=state.memory_mask, past=before)
            past.append(seen)
        return self.project(self.decoder_norm(x)[:, -1]).float(), replace(state, past=tuple(past))

    def spoken(self, memory: Tensor) -> Tensor | None:
        """log p (B, S, V) of a token, or of none (the padding's id), at every place; None without CTC."""
        return None if self.ctc is None else self.ctc(memory).float().log_softmax(-1)
