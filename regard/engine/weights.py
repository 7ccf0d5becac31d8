"""A model's weights as the native library takes them: a list of tensors and a shape.

Query, key and value become one matrix, and so do the keys and values that all decoder layers make of the
encoder's output. A head's width is padded to whole vectors with zeros, which change nothing. Norms are laid
out so that pre- and post-norm are one program: what stands before a sub-layer is its own norm, or that of
the sub-layer before it. How a part is run it says itself (`native`: see `regard.attention.linear`). Before
this file: `regard.models`; after it: `library.py`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.attention.heads import MultiHead
from regard.layers.feed_forward import FeedForward
from regard.layers.residual import Residual, gain_and_bias
from regard.layers.ssru import SSRU

PANEL = 16  # columns of a panel in kernels.h, to which head widths are padded
# The models that the engine knows, in their own words.
BOTH, ALONE, READS = "encoder and decoder", "decoder", "encoder"
DRAFTING = f"{BOTH} drafting"
AT_ONCE = (f"{BOTH} masked", f"{BOTH} aligned")
HEARD = f"{BOTH} heard"
RECURRENT = f"{BOTH} recurrent"
_TAKEN = {BOTH: (BOTH, DRAFTING, RECURRENT)}  # who drafts can also be searched
ACTIVATION_NUMBERS = {"relu": 1, "gelu": 2, "swish": 3, "gelu-tanh": 4, "relu2": 5, "geglu": 2, "swiglu": 3}
Pair = tuple[Tensor | None, Tensor | None]  # a matrix and its bias, or a norm's gain and shift
Product = tuple[Tensor, Tensor | None]


@dataclass(frozen=True)
class SideShape:
    """Encoder or decoder; `Side` in model.h."""

    layers: int = 0
    heads: int = 0
    kv_heads: int = 0
    width: int = 0  # of a head, padded
    d_ff: int = 0
    score_scale: float = 0.0


@dataclass(frozen=True)
class Weights:
    """Everything that the library is told; `Shape` in model.h."""

    d_model: int
    source_vocab: int
    target_vocab: int
    activation: int
    gated: bool
    post_norm: bool
    planes: int  # of a head, turned by rotary positions; 0: position vectors are added to the embeddings
    drafts: int  # tokens that are foreseen after the next one
    pairs: int  # rows of the table of neighbours; 0: there is none
    eps: float
    source_scale: float
    target_scale: float
    pair_scale: float
    encoder: SideShape
    decoder: SideShape
    tensors: list[Pair]


def word_of(part: object) -> str:
    """How a part says that the engine runs it; empty where its class does not say so for itself."""
    return str(vars(type(part)).get("native", ""))


def unsupported(model: Any, wanted: str = BOTH) -> str | None:
    """Why the engine cannot run this model as that kind, in a few words; None where it can."""
    if word_of(model) not in _TAKEN.get(wanted, (wanted,)):
        return f"it does not know the model kind {type(model).__name__}"
    if (pairs := getattr(model, "bigrams", None)) is not None and word_of(pairs) != "pairs":
        return f"it does not know the table of neighbours {type(pairs).__name__}"
    if next(model.parameters()).device.type != "cpu":
        return f"it runs on CPUs, and the model is on {next(model.parameters()).device}"
    if word_of(model.embedding.positions) not in ("nothing", "added"):
        return f"it does not know {type(model.embedding.positions).__name__} positions"
    if wanted == HEARD and (model.kind != "attention" or model.most_heard is None):
        return "it hears with full attention and learned positions alone, as Whisper does"
    if wanted.startswith(BOTH) and wanted != HEARD and word_of(model.source_positions) != "nothing":
        return "it reads no dependency trees"
    layers = _layers(model)
    if not layers:
        return "it has no layers"
    norms = [layer.around_feed_forward.norm for layer in layers]
    if model.embedding.normed:
        norms.append(model.embedding.norm)
    for norm in norms:
        if word_of(norm) not in ("moved", "scaled"):
            return f"it does not know the norm {type(norm).__name__}"
    for layer in layers:
        if layer.feed_forward.word not in ACTIVATION_NUMBERS:
            return f"it does not know the activation {layer.feed_forward.word}"
        for heads in (getattr(layer, "attention", None), getattr(layer, "cross", None)):
            if heads is not None and (reason := _strange(heads)):
                return reason
    if len({_planes(layer.attention) for layer in layers if hasattr(layer, "attention")}) > 1:
        return "its heads are turned in different widths"
    return None


def _strange(heads: MultiHead) -> str | None:
    """What of an attention the engine does not know, if anything."""
    if word_of(heads.kernel) != "full":
        return f"it does not know {type(heads.kernel).__name__} attention"
    if word_of(heads.score) != "dot":
        return f"it does not know the score {type(heads.score).__name__}"
    if word_of(heads.positions) not in ("nothing", "turned"):
        return f"it does not know {type(heads.positions).__name__} positions"
    return None


def lay_out(model: Any) -> Weights:
    """The weights of a model that is not `unsupported`; tensors that need no padding are the model's own."""
    first = _layers(model)[0]
    written = _written(model)
    pairs = getattr(model, "bigrams", None)
    return Weights(
        d_model=model.embedding.weight.shape[1],
        source_vocab=model.embedding.weight.shape[0],
        target_vocab=model.output_weight.shape[0],
        activation=ACTIVATION_NUMBERS[first.feed_forward.word],
        gated=first.feed_forward.gated,
        post_norm=not first.around_attention.first,
        planes=_planes(first.attention),
        drafts=0 if getattr(model, "drafter", None) is None else model.ahead,
        pairs=0 if pairs is None else len(pairs.weight),
        eps=first.around_attention.norm.eps,
        source_scale=model.embedding.scale,
        target_scale=written.scale,
        pair_scale=0.0 if pairs is None else pairs.scale,
        encoder=_side(_stack(model, "encoder")),
        decoder=_side(_stack(model, "decoder")),
        tensors=[tuple(_plain(each) for each in pair) for pair in _tensors(model)],  # type: ignore[misc]
    )


def _stack(model: Any, side: str) -> Any:
    """The layers of a side; none where the model has no such side. Their parts are known by name."""
    return getattr(model, side) if side in word_of(model).split() else ()


def _layers(model: Any) -> list[Any]:
    """Those of both sides."""
    return [*_stack(model, "encoder"), *_stack(model, "decoder")]


def _written(model: Any) -> Any:
    """The embedding of what is written, or of all where there is but one."""
    return getattr(model, "target_embedding", model.embedding)


def _planes(heads: MultiHead) -> int:
    """Pairs of dimensions that rotary positions turn; none with other positions."""
    return heads.query.out_features // heads.n_heads // 2 if word_of(heads.positions) == "turned" else 0


def _plain(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.detach().float().contiguous()


def _side(layers: Any) -> SideShape:
    if not layers:
        return SideShape()
    heads: MultiHead = getattr(layers[0], "attention", None) or layers[0].cross
    score: Any = heads.score
    width = heads.query.out_features // heads.n_heads
    d_ff = layers[0].feed_forward.outer.in_features
    return SideShape(len(layers), heads.n_heads, heads.kv_heads, _padded(width), d_ff, score.scale)


def _padded(width: int) -> int:
    return -(-width // PANEL) * PANEL


def _tensors(model: Any) -> Iterator[Pair]:
    """In the order that the constructor of `Model` in packing.cpp reads them."""
    encoder, decoder = _stack(model, "encoder"), _stack(model, "decoder")
    for layers in (encoder, decoder):
        yield from _all_of(layers)
    yield _closing(encoder, model.encoder_norm) if encoder else (None, None)
    yield _closing(decoder, model.decoder_norm) if decoder else (None, None)
    if encoder and decoder:
        yield _joined([_keys_values(layer.cross) for layer in decoder])
    if decoder:
        yield model.output_weight, getattr(model, "output_bias", None)
        yield from _drafter(getattr(model, "drafter", None), decoder[-1])
    yield _gain_and_shift(model.embedding.norm) if model.embedding.normed else (None, None)
    yield model.embedding.weight, None
    yield _written(model).weight, None
    yield getattr(getattr(model, "bigrams", None), "weight", None), None


def _drafter(drafter: Any, last: Any) -> Iterator[Pair]:
    """What foresees tokens, with the heads of the last layer; what they see begins with a whole panel."""
    if drafter is None:
        return
    heads, both = last.cross.n_heads, drafter.query.in_features
    own, seen = drafter.inner.weight.split([both, drafter.inner.in_features - both], 1)
    width = seen.shape[1] // heads
    seen = F.pad(seen.view(-1, heads, width), (0, _padded(width) - width)).flatten(1)
    yield _pad_heads(drafter.query, heads)
    yield torch.cat([F.pad(own, (0, _padded(both) - both)), seen], 1), drafter.inner.bias
    yield drafter.outer.weight, drafter.outer.bias
    yield drafter.narrow.weight, drafter.narrow.bias
    yield drafter.output_weight, None


def _all_of(layers: Any) -> Iterator[Pair]:
    """The layers of one side."""
    before: nn.Module | None = None  # the norm of the sub-layer before, where norms come last
    for layer in layers:
        around = layer.around_attention if hasattr(layer, "attention") else layer.around_recurrence
        yield _norm(around, before)
        yield from _own(layer)
        before = around.norm
        if getattr(layer, "cross", None) is not None:
            yield _norm(layer.around_cross, before)
            yield _query(layer.cross)
            yield _out(layer.cross)
            before = layer.around_cross.norm
        yield _norm(layer.around_feed_forward, before)
        yield _inner(layer.feed_forward)
        yield layer.feed_forward.outer.weight, layer.feed_forward.outer.bias
        before = layer.around_feed_forward.norm


def _own(layer: Any) -> Iterator[Pair]:
    """What a layer knows of its own side: heads, or a recurrence, which has no second product."""
    if hasattr(layer, "attention"):
        yield _joined([_query(layer.attention), _keys_values(layer.attention)])  # ((H + 2 KV) K, D)
        yield _out(layer.attention)
        return
    unit: SSRU = layer.recurrence
    bias = torch.zeros_like(unit.value.weight[0]) if unit.forget.bias is None else unit.forget.bias
    yield torch.cat([unit.value.weight, unit.forget.weight]), torch.cat([torch.zeros_like(bias), bias])
    yield None, None


def _norm(around: Residual, before: nn.Module | None) -> Pair:
    """What a sub-layer reads through."""
    norm: Any = around.norm if around.first else before
    return (None, None) if norm is None else _gain_and_shift(norm)


def _closing(layers: Any, norm: Any) -> Pair:
    """What stands after the last layer: the model's own norm, or that layer's."""
    last = layers[-1].around_feed_forward
    return _gain_and_shift(norm if last.first else last.norm)


def _gain_and_shift(norm: Any) -> Pair:
    """A norm that moves nothing has no shift, which is how the library knows it."""
    gain, shift = gain_and_bias(norm)
    return gain, shift if word_of(norm) == "moved" else None


def _inner(network: FeedForward) -> Product:
    """The first matrix; of one with a gate, panels of what opens and of what passes in turn."""
    if not network.gated:
        return network.inner.weight, network.inner.bias
    weight, bias = network.inner.weight, network.inner.bias
    return _in_turn(weight), None if bias is None else _in_turn(bias[:, None])[:, 0]


def _in_turn(both: Tensor) -> Tensor:
    """(2 F, D) -> (2 F padded, D)."""
    width = both.shape[0] // 2
    halves = F.pad(both.view(2, width, -1), (0, 0, 0, _padded(width) - width))
    return halves.view(2, -1, PANEL, both.shape[1]).transpose(0, 1).flatten(0, 2)


def _joined(pairs: list[Product]) -> Product:
    """Several matrices as one."""
    biases = [bias for _, bias in pairs if bias is not None]
    return torch.cat([weight for weight, _ in pairs]), torch.cat(biases) if biases else None


def _query(heads: MultiHead) -> Product:
    return _pad_heads(heads.query, heads.n_heads)


def _keys_values(heads: MultiHead) -> Product:
    return _pad_heads(heads.key_value, 2 * heads.kv_heads)


def _pad_heads(linear: nn.Linear, count: int) -> Product:
    """Rows of zeros after each of `count` heads, up to whole vectors."""
    width = linear.out_features // count
    more = _padded(width) - width
    bias: Tensor | None = linear.bias
    if not more:
        return linear.weight, bias
    weight = linear.weight.view(count, width, -1)
    weight = F.pad(weight, (0, 0, 0, more)).flatten(0, 1)  # (count padded, D)
    return weight, None if bias is None else F.pad(bias.view(count, width), (0, more)).flatten()


def _out(heads: MultiHead) -> Pair:
    """The matrix over the joined heads, with columns of zeros where a head was padded."""
    width = heads.out.in_features // heads.n_heads
    more = _padded(width) - width
    if not more:
        return heads.out.weight, heads.out.bias
    weight = heads.out.weight.view(-1, heads.n_heads, width)
    return F.pad(weight, (0, more)).flatten(1), heads.out.bias
