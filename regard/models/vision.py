"""A picture as a set of vectors: patches look at patches, and a query that is learned sums them up.

    x = stem(pixels) + positions        (B, C, H, W) -> (B, T, D), T patches in rows and columns
    h = N layers of self-attention      every patch sees every patch (Dosovitskiy et al. 2021)
    logits = W pool(h) + b              (B, L)

With `image.start=convolution` every head begins at one place of a K×K kernel: the theorem of Cordonnier et
al. 2020 as a first guess. `ConvolutionalVision` is what attention replaced. After it: the task `image`.
"""

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from regard.attention.dropout import dropout
from regard.attention.grid import Grid, grid_positions, grid_relations
from regard.attention.linear import Linear
from regard.attention.site import pooling
from regard.config import Config
from regard.config.image import ImageConfig
from regard.errors import UsageError
from regard.layers.patches import Patches, halving
from regard.layers.pooling import AttentionPool
from regard.models.assembly import begin, closing_norm, encoder_stack, heads_for


def grid_of(image: ImageConfig) -> Grid:
    """The rows and columns of patches; the last ones may reach over the edge."""
    patch = max(1, image.patch)
    return Grid(-(-max(1, image.height) // patch), -(-max(1, image.width) // patch))


class Vision(nn.Module):
    """Pixels (B, C, H, W), normalised, to logits of classes (B, L)."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        shape, image = config.model, config.of(ImageConfig)
        self.dropout, self.pooling = shape.dropout, image.pooling
        self.grid = grid_of(image)
        kind, first = config.positions.kind, image.pooling == "first"
        if first and kind not in ("learned", "none"):
            raise UsageError(
                f"image.pooling=first stands outside the picture: positions.kind={kind} has no place for it"
            )
        self.stem = Patches(
            max(1, image.channels), max(1, image.patch), shape.d_model, stem=image.stem, blocks=image.blocks
        )
        places = Grid(1, self.grid.places + image.front) if first else self.grid
        self.positions = grid_positions(kind, shape.d_model, places)
        relations = partial(grid_relations, kind, grid=self.grid)
        self.encoder, _ = encoder_stack(config, relations)
        self.encoder_norm = closing_norm(config)
        self.whole = nn.Parameter(torch.zeros(1, image.front, shape.d_model)) if first else None
        pool = image.pooling == "attention"
        none = partial(grid_relations, "none", grid=self.grid)
        self.pool = AttentionPool(heads_for(config, pooling(), none), shape.d_model) if pool else None
        self.output = Linear(shape.d_model, max(1, image.classes))
        begin(self, config)
        self.begun = image.start == "convolution"
        if self.begun:
            begin_as_convolution(self)

    def encode(self, pixels: Tensor) -> Tensor:
        """What the patches have become: (B, T, D), with a place in front where `image.pooling=first`."""
        x = self.stem(pixels)  # (B, T, D)
        if self.whole is not None:
            x = torch.cat([self.whole.expand(len(x), -1, -1).to(x.dtype), x], 1)
        x = dropout(self.positions.embed(x), max(0.0, self.dropout), training=self.training)
        for layer in self.encoder:
            x = layer(x)
        hidden: Tensor = self.encoder_norm(x)
        return hidden

    def forward(self, pixels: Tensor) -> Tensor:
        """(B, C, H, W) -> (B, L)."""
        hidden = self.encode(pixels)
        if self.pool is not None:
            found = self.pool(hidden)  # (B, D)
        else:
            found = hidden[:, 0] if self.whole is not None else hidden.mean(1)
        logits: Tensor = self.output(dropout(found, max(0.0, self.dropout), training=self.training))
        return logits


class ConvolutionalVision(nn.Module):
    """The same from convolutions alone: as many blocks of them as there are layers, then the mean."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        shape, image = config.model, config.of(ImageConfig)
        halvings = max(1, max(1, image.patch).bit_length() - 1)
        blocks = max(1, round(shape.encoder_layers / halvings))
        self.stem = halving(max(1, image.channels), shape.d_model, halvings, blocks)
        self.output = Linear(shape.d_model, max(1, image.classes))
        self.dropout = shape.dropout
        begin(self, config)

    def forward(self, pixels: Tensor) -> Tensor:
        """(B, C, H, W) -> (B, L)."""
        found = self.stem(pixels.contiguous(memory_format=torch.channels_last)).mean((2, 3))
        logits: Tensor = self.output(dropout(found, max(0.0, self.dropout), training=self.training))
        return logits


@torch.no_grad()
def begin_as_convolution(model: Any) -> None:
    """Every head at its place of a kernel; what a patch looks like has no say yet."""
    for layer in model.encoder:
        heads = layer.attention
        begin_there = getattr(heads.positions, "begin_as_convolution", None)
        if begin_there is None:
            raise UsageError("image.start=convolution needs positions.kind=quadratic: its heads have a place")
        begin_there()
        heads.key_value.weight[: heads.key_value.weight.shape[0] // 2].zero_()


def build_vision(config: Config) -> nn.Module:
    """The model that `model.kind` names: encoder, or conv."""
    return ConvolutionalVision(config) if config.model.kind == "conv" else Vision(config)
