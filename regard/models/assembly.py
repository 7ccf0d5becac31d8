"""From a config to the parts that every trained model has: tied embeddings, attention, first weights.

`transformer.py`, `rnn.py`, `lstmn.py` and `conv.py` are made of these. Before this file: the layers.
"""

from torch import Tensor, nn

from regard.attention.cache import KeyValue
from regard.attention.heads import MultiHead
from regard.attention.kernel import build_kernel
from regard.attention.masks import padding_mask
from regard.attention.positions import Positions, build_relations
from regard.attention.site import Site
from regard.config import Config
from regard.data.inputs import Tokens
from regard.layers.embedding import Embedding
from regard.layers.residual import build_norm, comes_first


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
        shape = config.model
        self.apply(draw)
        for module in self.modules():
            if callable(keep := getattr(module, "keep", None)):
                keep(norm_weights=shape.norm_weights, norm_eps=shape.norm_eps, bias=shape.bias)


def closing_norm(config: Config) -> nn.Module:
    """What ends a stack of layers: a norm where each layer has its own in front (`model.norm=pre`)."""
    word = config.model.norm
    return build_norm(word, config.model.d_model) if comes_first(word) else nn.Identity()


def needed_mask(inputs: Tokens) -> Tensor | None:
    """The padding mask (B, 1, 1, S), or None where there is no padding to hide."""
    mask = inputs.mask
    return None if mask is None or bool(mask.all()) else padding_mask(mask)


def memory_of(decoder: nn.ModuleList, memory: Tensor) -> tuple[KeyValue, ...]:
    """The keys and values that the cross-attention of each decoder layer makes of memory (B, S, D)."""
    heads = (layer.cross for layer in decoder)
    return tuple(each.keys_values(memory) for each in heads if isinstance(each, MultiHead))


def heads_for(config: Config, site: Site) -> MultiHead:
    """The attention that the config asks for at that site."""
    shape = config.model
    n_heads = shape.n_heads if site.stack == "encoder" else shape.decoder_heads or shape.n_heads
    return MultiHead(
        shape.d_model,
        n_heads,
        kv_heads=shape.kv_heads,
        site=site,
        kernel=build_kernel(config.attention, site),
        score=config.attention.score,
        dropout=config.attention.dropout,
        positions=build_relations(config.positions, site, n_heads, shape.d_model // n_heads),
    )


def draw(module: nn.Module) -> None:
    """Give a module its first weights, if it says how it begins (`regard.attention.linear`)."""
    if callable(own := getattr(module, "draw", None)):
        own()
