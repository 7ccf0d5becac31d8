"""A Transformer's weights as the native library takes them: a list of tensors and a shape.

Query, key and value become one matrix, and so do the keys and values that all decoder layers make of the
encoder's output. A head's width is padded to whole vectors with zeros, which change nothing. Norms are laid
out so that pre- and post-norm are one program: what stands before a sub-layer is its own norm, or that of
the sub-layer before it. Before this file: `regard.models.transformer`; after it: `library.py`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from regard.attention.absolute import Learned, Sinusoidal
from regard.attention.heads import MultiHead
from regard.attention.kernel import Kernel
from regard.attention.order import Positions
from regard.attention.rotary import Rotary
from regard.attention.score import Dot
from regard.layers.feed_forward import FeedForward
from regard.layers.residual import Residual, gain_and_bias
from regard.models.transformer import Transformer

PANEL = 16  # columns of a panel in kernels.h, to which head widths are padded
ACTIVATION_NUMBERS = {"relu": 1, "gelu": 2, "swish": 3}
Pair = tuple[Tensor | None, Tensor | None]  # a matrix and its bias, or a norm's gain and shift


@dataclass(frozen=True)
class SideShape:
    """Encoder or decoder; `Side` in model.h."""

    layers: int
    heads: int
    kv_heads: int
    width: int  # of a head, padded
    d_ff: int
    score_scale: float


@dataclass(frozen=True)
class Weights:
    """Everything that the library is told; `Shape` in model.h."""

    d_model: int
    source_vocab: int
    target_vocab: int
    activation: int
    post_norm: bool
    planes: int  # of a head, turned by rotary positions; 0: position vectors are added to the embeddings
    eps: float
    source_scale: float
    target_scale: float
    encoder: SideShape
    decoder: SideShape
    tensors: list[Pair]


def unsupported(model: object) -> str | None:
    """Why the engine cannot run this model, in a few words; None where it can."""
    if type(model) is not Transformer:
        return f"it does not know the model kind {type(model).__name__}"
    if next(model.parameters()).device.type != "cpu":
        return f"it runs on CPUs, and the model is on {next(model.parameters()).device}"
    if type(model.embedding.positions) not in (Positions, Sinusoidal, Learned):
        return f"it does not know {type(model.embedding.positions).__name__} positions"
    if type(model.source_positions) is not Positions:
        return "it reads no dependency trees"
    layer: Any = model.decoder[0]
    if layer.feed_forward.word not in ACTIVATION_NUMBERS:
        return f"it does not know the activation {layer.feed_forward.word}"
    if not isinstance(layer.around_attention.norm, nn.LayerNorm):
        return "it does not know norms of root mean squares"
    if layer.attention.out.bias is None:
        return "it takes products with biases"
    for heads in (module for module in model.modules() if isinstance(module, MultiHead)):
        if type(heads.kernel) is not Kernel:
            return f"it does not know {type(heads.kernel).__name__} attention"
        if type(heads.score) is not Dot:
            return f"it does not know the score {type(heads.score).__name__}"
        if type(heads.positions) not in (Positions, Rotary):
            return f"it does not know {type(heads.positions).__name__} positions"
    if len({_planes(layer.attention) for layer in (*model.encoder, *model.decoder)}) > 1:
        return "its heads are turned in different widths"
    return None


def lay_out(model: Transformer) -> Weights:
    """The weights of a model that is not `unsupported`; tensors that need no padding are the model's own."""
    first: Any = model.encoder[0]  # its parts are known by name, not by type
    last: Any = model.decoder[0]
    return Weights(
        d_model=model.embedding.weight.shape[1],
        source_vocab=model.embedding.weight.shape[0],
        target_vocab=model.output_weight.shape[0],
        activation=_activation(first.feed_forward),
        post_norm=not first.around_attention.first,
        planes=_planes(first.attention),
        eps=first.around_attention.norm.eps,
        source_scale=model.embedding.scale,
        target_scale=model.target_embedding.scale,
        encoder=_side(first, len(model.encoder), first.attention),
        decoder=_side(last, len(model.decoder), last.cross),
        tensors=[tuple(_plain(each) for each in pair) for pair in _tensors(model)],  # type: ignore[misc]
    )


def _planes(heads: Any) -> int:
    """Pairs of dimensions that rotary positions turn; none with other positions."""
    return heads.query.out_features // heads.n_heads // 2 if isinstance(heads.positions, Rotary) else 0


def _plain(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.detach().float().contiguous()


def _activation(layer: FeedForward) -> int:
    return ACTIVATION_NUMBERS[layer.word]


def _side(layer: Any, layers: int, heads: MultiHead) -> SideShape:
    score = heads.score
    assert isinstance(score, Dot)
    width = heads.query.out_features // heads.n_heads
    d_ff = layer.feed_forward.inner.out_features
    return SideShape(layers, heads.n_heads, heads.kv_heads, _padded(width), d_ff, score.scale)


def _padded(width: int) -> int:
    return -(-width // PANEL) * PANEL


def _tensors(model: Transformer) -> Iterator[Pair]:
    """In the order that the constructor of `Model` in model.cpp reads them."""
    before: nn.LayerNorm | None = None  # the norm of the sub-layer before, where norms come last
    layer: Any
    for layer in model.encoder:
        yield _norm(layer.around_attention, before)
        yield _joined(layer.attention)
        yield _out(layer.attention)
        yield from _feed_forward(layer, layer.around_attention.norm)
        before = layer.around_feed_forward.norm
    closing: list[Pair] = [_closing(model.encoder_norm, before)]
    before = None
    for layer in model.decoder:
        yield _norm(layer.around_attention, before)
        yield _joined(layer.attention)
        yield _out(layer.attention)
        yield _norm(layer.around_cross, layer.around_attention.norm)
        yield _query(layer.cross)
        yield _out(layer.cross)
        yield from _feed_forward(layer, layer.around_cross.norm)
        before = layer.around_feed_forward.norm
    yield from closing
    yield _closing(model.decoder_norm, before)
    crosses: list[Any] = [layer.cross for layer in model.decoder]
    yield _stack([_keys_values(heads) for heads in crosses])
    yield model.output_weight, model.output_bias
    yield model.embedding.weight, None
    yield model.target_embedding.weight, None


def _norm(around: Residual, before: nn.LayerNorm | None) -> Pair:
    norm = around.norm if around.first else before
    return (None, None) if norm is None else gain_and_bias(norm)


def _closing(norm: nn.Module, before: nn.LayerNorm | None) -> Pair:
    last = norm if isinstance(norm, nn.LayerNorm) else before
    return (None, None) if last is None else gain_and_bias(last)


def _feed_forward(layer: Any, before: nn.LayerNorm) -> Iterator[Pair]:
    network: FeedForward = layer.feed_forward
    yield _norm(layer.around_feed_forward, before)
    yield network.inner.weight, network.inner.bias
    yield network.outer.weight, network.outer.bias


def _stack(pairs: list[tuple[Tensor, Tensor]]) -> Pair:
    return torch.cat([weight for weight, _ in pairs]), torch.cat([bias for _, bias in pairs])


def _joined(heads: MultiHead) -> Pair:
    """Query, key and value as one matrix ((H + 2 KV) K, D)."""
    return _stack([_query(heads), _keys_values(heads)])


def _query(heads: MultiHead) -> tuple[Tensor, Tensor]:
    return _pad_heads(heads.query, heads.n_heads)


def _keys_values(heads: MultiHead) -> tuple[Tensor, Tensor]:
    return _pad_heads(heads.key_value, 2 * heads.kv_heads)


def _pad_heads(linear: nn.Linear, count: int) -> tuple[Tensor, Tensor]:
    """Rows of zeros after each of `count` heads, up to whole vectors."""
    width = linear.out_features // count
    more = _padded(width) - width
    weight = linear.weight.view(count, width, -1)
    weight = nn.functional.pad(weight, (0, 0, 0, more)).flatten(0, 1)  # (count padded, D)
    return weight, nn.functional.pad(linear.bias.view(count, width), (0, more)).flatten()


def _out(heads: MultiHead) -> Pair:
    """The matrix over the joined heads, with columns of zeros where a head was padded."""
    width = heads.out.in_features // heads.n_heads
    weight = heads.out.weight.view(-1, heads.n_heads, width)
    return nn.functional.pad(weight, (0, _padded(width) - width)).flatten(1), heads.out.bias
