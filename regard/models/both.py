"""One stack under two masks: it writes on like a decoder, and reads a whole text like an encoder (GPT-BERT).

    forward   place i sees what stands up to it, and foretells i + 1      (Charpentier and Samuel 2024)
    encode    place i sees all places, and foretells i + 1 where that is hidden

What is foretold stands one place further in both, so that one output serves both. After this file:
`regard.tasks.both`.
"""

from typing import ClassVar

import torch
from torch import Tensor, nn

from regard.config import Config
from regard.data.inputs import Tokens
from regard.models.assembly import needed_mask, storeys
from regard.models.decoder import Decoder


class Both(Decoder):
    """A decoder that can read as an encoder does: no weight of it is for one of the two alone."""

    native = "decoder"
    ahead: ClassVar[int] = 1  # places between where a gap is foretold and the gap

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.transform = nn.Identity()
        self.output_bias = None

    def storeys(self) -> list[list[nn.Parameter]]:
        """Its weights by how deep they lie (`assembly.storeys`)."""
        return storeys(self, self.decoder, self.decoder_norm)

    def encode(self, inputs: Tokens) -> Tensor:
        """Rows (B, S), padded at their ends -> hidden (B, S, D); each place has seen every one."""
        ids = inputs.ids
        x = self.embedding(ids)
        if self.bigrams is not None:
            x = x + self.bigrams(torch.cat([torch.zeros_like(ids[:, :1]), ids[:, :-1]], 1), ids)
        mask = needed_mask(inputs)
        for layer in self.decoder:
            x, _ = layer(x, mask=mask, causal=False)
        hidden: Tensor = self.decoder_norm(x)
        return hidden
