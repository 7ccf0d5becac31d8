"""DETR as it was first written (Carion et al. 2020): queries are vectors, and the last layer says the boxes.

    memory = encoder(backbone(pixels))              positions are added where a patch looks or is looked at
    x = 0; a layer: x + query sees the other queries, then the memory
    classes = W x (the last one: nothing is here), boxes = sigmoid(three products of x)

`detector.py` is what learns from little data; this one holds weights that others have trained. What it
answers is the same, `Found`. Before this file: `regard.interop.detr`; after it: the task `detection`.
"""

from torch import Tensor, nn

from regard.attention.dropout import dropout
from regard.attention.grid import GridAdded
from regard.attention.linear import Linear, gaussian
from regard.attention.order import Positions
from regard.attention.site import crossing, finding
from regard.config import Config
from regard.config.detection import DetectionConfig
from regard.layers.decoder import DecoderLayer
from regard.layers.residual import Norm
from regard.models.assembly import begin, closing_norm, encoder_stack, heads_for, remembered
from regard.models.detector import Boxes, Found, Hints, backbone_for, grid_of


class Detr(nn.Module):
    """Pixels (B, C, H, W), normalised, to a set of classes and boxes."""

    matrices = {"query": 0}  # noqa: RUF012

    def __init__(self, config: Config) -> None:
        super().__init__()
        shape, held = config.model, config.of(DetectionConfig)
        self.dropout = max(0.0, shape.dropout)
        self.classes, self.queries = max(1, held.classes), max(1, held.queries)
        self.grid = grid_of(held)
        self.backbone = backbone_for(held, shape.d_model)

        def added(n_heads: int, d_head: int) -> Positions:
            return GridAdded(n_heads * d_head, self.grid)

        self.encoder, _ = encoder_stack(config, added)
        self.encoder_norm = closing_norm(config)
        self.decoder = nn.ModuleList(
            DecoderLayer(
                heads_for(config, finding(number), added),
                heads_for(config, crossing(number), added),
                shape.d_model,
                shape.decoder_d_ff or shape.d_ff,
                norm=shape.norm,
                dropout=self.dropout,
                activation=shape.activation,
            )
            for number in range(shape.decoder_layers)
        )
        self.decoder_norm = Norm(shape.d_model)
        self.query = gaussian(self.queries, shape.d_model, scale=1.0)
        self.output = Linear(shape.d_model, self.classes + 1)
        self.boxes = Boxes(shape.d_model)
        begin(self, config)

    def encode(self, pixels: Tensor) -> Tensor:
        """(B, C, H, W) -> memory (B, S, D)."""
        x = dropout(self.backbone(pixels), self.dropout, training=self.training)
        for layer in self.encoder:
            x = layer(x)
        memory: Tensor = self.encoder_norm(x)
        return memory

    def forward(self, pixels: Tensor, hints: Hints | None = None) -> Found:
        """(B, C, H, W) -> what was found after each layer; it has no use for hints."""
        assert hints is None
        memory = self.encode(pixels)
        x, query = memory.new_zeros(len(memory), *self.query.shape), self.query.to(memory.dtype)
        found = Found([], [])
        for layer, seen in zip(self.decoder, remembered(self.decoder, memory), strict=True):
            x, _ = layer(x, seen, places=query)
            normed = self.decoder_norm(x)  # (B, Q, D)
            found.classes.append(self.output(normed).float())
            found.boxes.append(self.boxes(normed).float().sigmoid())
        return found
