"""An encoder with an output for labels: one for a text, or one for each of its words.

    text   labels = W pool(hidden) + b              (B, L), and what its runs of tokens say (`layers/grams`)
    words  labels = W (first + last) / 2 + b        (N, L), of the first and the last piece of each word

What reads is an encoder, or a decoder that has learned to read both ways (`both.py`). After this file:
`regard.tasks.labels`.
"""

from collections.abc import Sequence

from torch import Tensor, nn

from regard.attention.dropout import dropout
from regard.attention.linear import Linear
from regard.config import Config
from regard.data.inputs import Tokens
from regard.layers.grams import Grams
from regard.layers.pooling import pool
from regard.models.both import Both
from regard.models.encoder import Encoder


class Labeller(nn.Module):
    """Ids in, logits of labels out."""

    def __init__(self, config: Config, labels: int, pooling: str, *, grams: int = 0) -> None:
        """`grams`: rows of a table of runs of tokens, for labels of texts; 0: none."""
        super().__init__()
        self.body = Both(config) if config.model.kind == "decoder" else Encoder(config)
        self.pooling, self.dropout = pooling, config.model.dropout
        self.output = Linear(config.model.d_model, labels)
        self.output.draw()
        self.grams = Grams(grams, labels, dropout=max(0.0, self.dropout)) if grams else None

    def forward(self, inputs: Tokens, spots: Tensor | None = None) -> Tensor:
        """Rows (B, S) -> logits (B, L); with `spots` (N, 3), row, first and last place of words: (N, L)."""
        return self.agreed(self.opinions(inputs, spots))

    @staticmethod
    def agreed(opinions: Sequence[Tensor]) -> Tensor:
        """The mean of what each half says, (N, L) each: their geometric mean, as chances."""
        return sum(opinions[1:], opinions[0]) / len(opinions)

    def opinions(self, inputs: Tokens, spots: Tensor | None = None) -> list[Tensor]:
        """What the encoder says, and the runs of tokens, if there is a table of them: logits (N, L) each.

        Each learns by a loss of its own: what both had to explain together, the one that is faster would
        explain alone.
        """
        hidden = self.body.encode(inputs)  # (B, S, D)
        if spots is None:
            found = pool(hidden, inputs.real, self.pooling)  # (B, D)
        else:
            rows, first, last = spots.unbind(1)
            found = (hidden[rows, first] + hidden[rows, last]) / 2  # (N, D)
        logits: Tensor = self.output(dropout(found, max(0.0, self.dropout), training=self.training))
        return [logits] if self.grams is None else [logits, self.grams(inputs.ids, inputs.real)]
