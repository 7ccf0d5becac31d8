"""From a config to the parts that every trained model has: tied embeddings, attention, first weights.

`transformer.py`, `decoder.py`, `rnn.py`, `lstmn.py` and `conv.py` are made of these. Before this file: the
layers.
"""

from collections.abc import Callable, Iterable
from typing import Any

from torch import Tensor, nn

from regard.attention.cache import KeyValue
from regard.attention.heads import MultiHead
from regard.attention.kernel import build_kernel, tie
from regard.attention.linear import gaussian
from regard.attention.masks import padding_mask
from regard.attention.positions import Positions, build_relations
from regard.attention.site import Site, crossing, filling, reading, writing
from regard.config import Config
from regard.data.inputs import Tokens
from regard.layers.decoder import DecoderLayer
from regard.layers.embedding import Embedding
from regard.layers.encoder import EncoderLayer
from regard.layers.residual import NORMS

Relations = Callable[[int, int], Positions]  # of so many heads of that width


class Tied(nn.Module):
    """Base of all trained models: one matrix for source, target and output."""

    def __init__(self, config: Config, positions: Positions | None = None) -> None:
        super().__init__()
        shape, positions = config.model, positions or Positions()
        self.max_length = positions.max_length
        self.embedding = Embedding(
            shape.vocab_size,
            shape.d_model,
            positions=positions,
            dropout=shape.dropout,
            scaled=shape.scale_embedding,
            normed=shape.embedding_norm,
        )

    @property
    def output_weight(self) -> Tensor:
        """The output layer's matrix (V, D)."""
        return self.embedding.weight

    def project(self, hidden: Tensor) -> Tensor:
        """hidden (..., D) -> logits (..., V)."""
        return self.embedding.project(hidden)

    def draw_weights(self, config: Config) -> None:
        """The first weights, without those that the model does without; the last thing that building does."""
        begin(self, config)


def begin(model: nn.Module, config: Config) -> None:
    """Give a model its first weights, and let go of what the config says that it does without."""
    shape = config.model
    model.apply(draw)
    for module in model.modules():
        if callable(keep := getattr(module, "keep", None)):
            keep(norm_weights=shape.norm_weights, norm_eps=shape.norm_eps, bias=shape.bias)


def closing_norm(config: Config) -> nn.Module:
    """What ends a stack of layers: a norm where each layer has its own in front (`model.norm=pre`)."""
    kind = NORMS[config.model.norm]
    return kind.build(config.model.d_model) if kind.first else nn.Identity()


def needed_mask(inputs: Tokens) -> Tensor | None:
    """The padding mask (B, 1, 1, S), or None where there is no padding to hide."""
    mask = inputs.mask
    return None if mask is None or bool(mask.all()) else padding_mask(mask)


def encoder_stack(config: Config, relations: Relations | None = None) -> tuple[nn.ModuleList, int | None]:
    """The layers that read, and how many places they can: kernels tied, memory saved as the config says.

    `relations` makes the positions inside attention of what is no line of words.
    """
    shape = config.model
    layers = [
        EncoderLayer(
            heads_for(config, reading(i), relations),
            shape.d_model,
            shape.d_ff,
            norm=shape.norm,
            dropout=shape.dropout,
            activation=shape.activation,
        )
        for i in range(shape.encoder_layers)
    ]
    kernels = [layer.attention.kernel for layer in layers]
    tie(kernels)
    for layer in layers:
        layer.recompute = config.train.recompute
    return nn.ModuleList(layers), kernels[0].max_length


def shorter(one: int | None, other: int | None) -> int | None:
    """The smaller of two bounds; None does not bind."""
    return min((bound for bound in (one, other) if bound is not None), default=None)


def storeys(model: nn.Module, layers: Iterable[nn.Module], norm: nn.Module) -> list[list[nn.Parameter]]:
    """A model's weights from below: all that is in no layer, then each layer's, the last with the norm."""
    found = [list(layer.parameters()) for layer in layers] or [[]]
    found[-1] += norm.parameters()
    inside = {id(weight) for each in found for weight in each}
    return [[weight for weight in model.parameters() if id(weight) not in inside], *found]


def remembered(decoder: Iterable[Any], memory: Tensor) -> tuple[KeyValue, ...]:
    """The keys and values that the cross-attention of each decoder layer makes of memory (B, S, D)."""
    return tuple(layer.cross.keys_values(memory) for layer in decoder)


def own_output(config: Config, size: int) -> nn.Parameter | None:
    """An output matrix (V, D) that is not one with the embeddings, where `model.tied` asks for it."""
    width = config.model.d_model
    apart = config.model.tied in ("embeddings", "none")
    return gaussian(size, width) if apart else None


def decoder_layers(config: Config, *, cross: bool, causal: bool = True) -> nn.ModuleList:
    """The layers that write, with a look at a memory (`cross`) or without, at the past alone or not."""
    shape, own = config.model, writing if causal else filling
    return nn.ModuleList(
        DecoderLayer(
            heads_for(config, own(i)),
            heads_for(config, crossing(i)) if cross else None,
            shape.d_model,
            shape.decoder_d_ff or shape.d_ff,
            norm=shape.norm,
            dropout=shape.dropout,
            activation=shape.activation,
        )
        for i in range(shape.decoder_layers)
    )


def heads_for(config: Config, site: Site, relations: Relations | None = None) -> MultiHead:
    """The attention that the config asks for at that site."""
    shape = config.model
    n_heads = shape.n_heads if site.stack == "encoder" else shape.decoder_heads or shape.n_heads
    d_head = shape.d_model // n_heads
    if relations is None:
        positions = build_relations(config.positions, site, n_heads, d_head)
    else:
        positions = relations(n_heads, d_head)
    return MultiHead(
        shape.d_model,
        n_heads,
        kv_heads=shape.kv_heads,
        site=site,
        kernel=build_kernel(config.attention, site),
        score=config.attention.score,
        dropout=config.attention.dropout,
        positions=positions,
    )


def draw(module: nn.Module) -> None:
    """Give a module its first weights, if it says how it begins (`regard.attention.linear`)."""
    if callable(own := getattr(module, "draw", None)):
        own()
