"""Word windows: a convolutional encoder and decoder with attention to the source (Gehring et al. 2017).

Every decoder layer looks at the source. ConvS2S adds the embeddings to queries and values by hand; here
they arrive there by the residuals, which carry them through every layer. What a position says is added to
the embeddings (`positions.kind`). `model.kernel` is the width of a window.
"""

from torch import Tensor, nn

from regard.attention.positions import build_positions
from regard.attention.site import crossing
from regard.config import Config
from regard.data.inputs import Tokens
from regard.layers.convolution import ConvolutionDecoderLayer, ConvolutionEncoderLayer
from regard.models.assembly import closing_norm, heads_for, needed_mask
from regard.models.stepped import Stepped


class Convolution(Stepped):
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
