"""An encoder with an output for labels: one for a text, or one for each of its words.

    text   labels = W pool(hidden) + b              (B, L)
    words  labels = W (first + last) / 2 + b        (N, L), of the first and the last piece of each word

What reads is an encoder, or a decoder that has learned to read both ways (`both.py`). After this file:
`regard.tasks.labels`.
"""

from torch import Tensor, nn

from regard.attention.dropout import dropout
from regard.attention.linear import Linear
from regard.config import Config
from regard.data.inputs import Tokens
from regard.layers.pooling import pool
from regard.models.both import Both
from regard.models.encoder import Encoder


class Labeller(nn.Module):
    """Ids in, logits of labels out."""

    def __init__(self, config: Config, labels: int, pooling: str) -> None:
        super().__init__()
        self.body = Both(config) if config.model.kind == "decoder" else Encoder(config)
        self.pooling, self.dropout = pooling, config.model.dropout
        self.output = Linear(config.model.d_model, labels)
        self.output.draw()

    def forward(self, inputs: Tokens, spots: Tensor | None = None) -> Tensor:
        """Rows (B, S) -> logits (B, L); with `spots` (N, 3), row, first and last place of words: (N, L)."""
        hidden = self.body.encode(inputs)  # (B, S, D)
        if spots is None:
            found = pool(hidden, inputs.real, self.pooling)  # (B, D)
        else:
            rows, first, last = spots.unbind(1)
            found = (hidden[rows, first] + hidden[rows, last]) / 2  # (N, D)
        logits: Tensor = self.output(dropout(found, max(0.0, self.dropout), training=self.training))
        return logits
