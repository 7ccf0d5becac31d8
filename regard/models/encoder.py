"""The encoder alone: every place sees every place (Devlin et al. 2019).

    hidden = encode(inputs)       (B, S) ids -> (B, S, D), what the places have become in their context
    logits = project(hidden)      where a word was hidden, which one it was

The Transformer's layers that read, without what writes. BERT puts a norm behind the embeddings
(`model.embedding_norm`) and a layer before the output (`model.output_transform`). Whoever wants vectors of
sentences or labels takes the hidden states: `regard.layers.pooling`, `labeller.py`.
"""

from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.attention.linear import Linear
from regard.attention.positions import build_positions
from regard.config import Config
from regard.data.inputs import Tokens
from regard.layers.feed_forward import ACTIVATIONS
from regard.layers.residual import Norm
from regard.models.assembly import Tied, closing_norm, encoder_stack, needed_mask, shorter, storeys


class Transform(nn.Module):
    """norm(a(x W + b)): what BERT has between its last layer and its output."""

    def __init__(self, d_model: int, activation: str) -> None:
        super().__init__()
        self.inner = Linear(d_model, d_model)
        self.activation = ACTIVATIONS.get(activation, F.gelu)  # a gate has no place here
        self.norm = Norm(d_model)

    def forward(self, hidden: Tensor) -> Tensor:
        """(..., D) -> (..., D)."""
        out: Tensor = self.norm(self.activation(self.inner(hidden)))
        return out


class Encoder(Tied):
    """Ids in, hidden states out; `project` gives logits."""

    native = "encoder"
    ahead: ClassVar[int] = 0  # a gap is foretold where it stands

    def __init__(self, config: Config) -> None:
        shape = config.model
        super().__init__(config, build_positions(config.positions, shape.d_model))
        self.encoder, bound = encoder_stack(config)
        self.max_length = shorter(self.max_length, bound)
        self.encoder_norm = closing_norm(config)
        self.transform = (
            Transform(shape.d_model, shape.activation) if shape.output_transform else nn.Identity()
        )
        self.output_bias = nn.Parameter(torch.zeros(shape.vocab_size)) if shape.output_bias else None
        self.draw_weights(config)

    def storeys(self) -> list[list[nn.Parameter]]:
        """Its weights by how deep they lie (`assembly.storeys`)."""
        return storeys(self, self.encoder, self.encoder_norm)

    def encode(self, inputs: Tokens) -> Tensor:
        """Rows (B, S), padded at their ends -> hidden (B, S, D)."""
        x = self.embedding(inputs.ids)
        mask = needed_mask(inputs)
        for layer in self.encoder:
            x = layer(x, mask)
        hidden: Tensor = self.encoder_norm(x)
        return hidden

    def forward(self, inputs: Tokens) -> Tensor:
        """What `encode` gives."""
        return self.encode(inputs)

    def project(self, hidden: Tensor) -> Tensor:
        """hidden (..., D) -> logits (..., V)."""
        return F.linear(self.transform(hidden), self.output_weight, self.output_bias)
