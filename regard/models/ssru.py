"""A Transformer whose decoder has a recurrence where self-attention was: `model.kind=ssru`.

The small translators of Firefox are of this kind (Bogoychev et al. 2020; `regard.interop.bergamot` reads
them). The encoder is the Transformer's; a step of the decoder costs the same however much has been written.
Before this file: `regard.layers.ssru`.
"""

from torch import nn

from regard.attention.site import crossing
from regard.config import Config
from regard.layers.ssru import SSRULayer
from regard.models.assembly import heads_for
from regard.models.stepped import Stepped
from regard.models.transformer import EncoderDecoder


class SSRUTransformer(EncoderDecoder, Stepped):
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
