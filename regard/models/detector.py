"""Objects as a set: queries look at the picture and at each other, and each says what it found, and where.

    memory = encoder(backbone(pixels))              (B, S, D), a vector a patch
    x, box = query, anchor                          Q of each, learned: a query is a box from the beginning
    a layer: x sees the other queries, then the memory around its box; box += W x
    classes = W x (the last one: nothing is here)

Carion et al. 2020 (DETR); queries as anchor boxes: Liu et al. 2022 (DAB); the queries of `hints`, spoiled
boxes that are to be put right, are kept apart by a mask: Li et al. 2022 (DN).
"""

from functools import partial
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.attention.absolute import sinusoids_at
from regard.attention.dropout import dropout
from regard.attention.grid import Grid, grid_positions, grid_relations
from regard.attention.linear import Linear, gaussian
from regard.attention.order import Positions
from regard.attention.quadratic import BoxQuadratic
from regard.attention.site import crossing, finding
from regard.config import Config
from regard.config.detection import DetectionConfig
from regard.layers.boxes import logit
from regard.layers.decoder import DecoderLayer
from regard.layers.efficientnet import EfficientPatches
from regard.layers.patches import Patches
from regard.layers.resnet import ResidualPatches
from regard.models.assembly import begin, closing_norm, encoder_stack, heads_for, remembered

_FINE = 100.0  # a picture's side as places of the sinusoids


class Hints(NamedTuple):
    """Boxes and classes that were spoiled, as more queries: boxes (B, N, 4), classes (B, N); `mask` hides."""

    boxes: Tensor
    classes: Tensor
    mask: Tensor  # (1, 1, N + Q, N + Q), True: may look


class Found(NamedTuple):
    """What each query has found after each layer, the last one last: of hints first, then of the queries."""

    classes: list[Tensor]  # (B, N + Q, L + 1)
    boxes: list[Tensor]  # (B, N + Q, 4), centre and size


def grid_of(held: DetectionConfig) -> Grid:
    """Rows and columns of patches."""
    stride = max(1, held.stride)
    return Grid(-(-max(1, held.height) // stride), -(-max(1, held.width) // stride))


def backbone_for(held: DetectionConfig, width: int) -> nn.Module:
    """What makes vectors of pixels: (B, C, H, W) -> (B, T, width)."""
    stride, channels = max(1, held.stride), max(1, held.channels)
    if held.backbone == "own":
        return Patches(channels, stride, width, stem="convolution", blocks=held.blocks)
    if held.backbone == "resnet":
        return ResidualPatches(channels, stride, width, held.resnet)
    return EfficientPatches(channels, stride, width)


class Boxes(nn.Module):
    """Three products with max(0, ·) between: how far a box has to be moved. Nothing at first."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.inner = nn.ModuleList([Linear(width, width), Linear(width, width)])
        self.outer = nn.Linear(width, 4)
        nn.init.zeros_(self.outer.weight)
        nn.init.zeros_(self.outer.bias)

    def forward(self, x: Tensor) -> Tensor:
        """(..., D) -> (..., 4)."""
        for layer in self.inner:
            x = F.relu(layer(x))
        out: Tensor = self.outer(x)
        return out


class Detector(nn.Module):
    """Pixels (B, C, H, W), normalised, to a set of classes and boxes."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        shape, held = config.model, config.of(DetectionConfig)
        self.width, self.dropout = shape.d_model, max(0.0, shape.dropout)
        self.classes, self.queries = max(1, held.classes), max(1, held.queries)
        self.grid, self.centred = grid_of(held), held.centred
        self.backbone = backbone_for(held, shape.d_model)
        kind = config.positions.kind
        self.positions = grid_positions(kind, shape.d_model, self.grid)
        self.encoder, _ = encoder_stack(config, partial(grid_relations, kind, grid=self.grid))
        self.encoder_norm = closing_norm(config)
        self.decoder = nn.ModuleList(self._layer(config, i) for i in range(shape.decoder_layers))
        self.decoder_norm = closing_norm(config)
        self.content = gaussian(self.queries, shape.d_model)
        self.anchors = nn.Parameter(_first_anchors(self.queries))
        self.place = nn.Sequential(
            Linear(2 * shape.d_model, shape.d_model), nn.ReLU(), Linear(shape.d_model, shape.d_model)
        )
        self.hinted = nn.Embedding(self.classes, shape.d_model) if held.denoising else None
        self.output = Linear(shape.d_model, self.classes + 1)
        self.boxes = Boxes(shape.d_model)
        begin(self, config)

    matrices = {"hinted": 0, "content": 0, "anchors": 0}  # noqa: RUF012

    def _layer(self, config: Config, number: int) -> DecoderLayer:
        shape = config.model

        def nothing(n_heads: int, d_head: int) -> Positions:
            return Positions()

        def around(n_heads: int, d_head: int) -> Positions:
            return BoxQuadratic(n_heads, self.grid)

        return DecoderLayer(
            heads_for(config, finding(number), nothing),
            heads_for(config, crossing(number), around if self.centred else nothing),
            shape.d_model,
            shape.decoder_d_ff or shape.d_ff,
            norm=shape.norm,
            dropout=self.dropout,
            activation=shape.activation,
        )

    def encode(self, pixels: Tensor) -> Tensor:
        """(B, C, H, W) -> memory (B, S, D)."""
        x = self.positions.embed(self.backbone(pixels))
        x = dropout(x, self.dropout, training=self.training)
        for layer in self.encoder:
            x = layer(x)
        memory: Tensor = self.encoder_norm(x)
        return memory

    def forward(self, pixels: Tensor, hints: Hints | None = None) -> Found:
        """(B, C, H, W) -> what was found after each layer."""
        memory = self.encode(pixels)
        rows = len(memory)
        x = self.content.expand(rows, -1, -1).to(memory.dtype)  # (B, Q, D)
        box = self.anchors.sigmoid().expand(rows, -1, -1)
        mask = None
        if hints is not None:
            assert self.hinted is not None
            x = torch.cat([self.hinted(hints.classes).to(x.dtype), x], 1)
            box = torch.cat([hints.boxes, box], 1)
            mask = hints.mask
        return self._find(x, box, memory, mask)

    def _find(self, x: Tensor, box: Tensor, memory: Tensor, mask: Tensor | None) -> Found:
        found = Found([], [])
        for layer, seen in zip(self.decoder, remembered(self.decoder, memory), strict=True):
            x = x + self.place(self._sines(box).to(x.dtype))
            x, _ = layer(x, seen, mask=mask, places=box)
            normed = self.decoder_norm(x)
            moved = (logit(box) + self.boxes(normed).float()).sigmoid()
            found.classes.append(self.output(normed).float())
            found.boxes.append(moved)
            box = moved.detach()  # each layer answers for its own step
        return found

    def _sines(self, box: Tensor) -> Tensor:
        """Boxes (B, Q, 4) as sinusoids of their four numbers: (B, Q, 2 D)."""
        return sinusoids_at(box.float() * _FINE, self.width // 2).flatten(2)


def _first_anchors(count: int) -> Tensor:
    """Boxes spread over the picture, as what the sigmoid is taken of: (Q, 4)."""
    side = max(1, round(count**0.5))
    place = torch.arange(count)
    x, y = (place % side + 0.5) / side, (place // side + 0.5) / -(-count // side)
    return logit(torch.stack([x, y, torch.full((count,), 0.2), torch.full((count,), 0.2)], 1))
