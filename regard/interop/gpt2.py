"""GPT-2 folders of Hugging Face (Radford et al. 2019), and GPT-NeoX's, become model folders of ours.

Query, key and value are one matrix, the norms come first and are moved. GPT-2's matrices multiply from the
right and its positions are learned; GPT-NeoX turns (rotary), and has query, key and value head by head. The
names of their tensors are told once, in `Names`, and serve `decoders.py`, which writes, too. The tokenizer is
`byte_level.py`'s. Which file is read by whom: `known.py`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

from torch import Tensor

from regard.errors import ModelError, shown
from regard.foreign import read_json
from regard.interop import byte_level
from regard.interop.tensors import Taking, read_tensors, settle
from regard.models.folder import Loaded

ACTIVATIONS = {"relu": "relu", "swish": "silu", "gelu": "gelu", "gelu-tanh": "gelu_new", "relu2": "relu2"}
_OURS = {theirs: ours for ours, theirs in ACTIVATIONS.items()} | {"gelu_pytorch_tanh": "gelu-tanh"}
THETA = 10000.0  # of the slowest turn; the angles of ours


@dataclass(frozen=True)
class Names:
    """What a layout calls its tensors; all but the output layer stand behind `prefix`."""

    what: str
    prefix: str
    embedding: str
    places: str  # a table of positions; empty: it has none
    norm: str  # the last one
    output: str
    layers: str
    norms: tuple[str, str]  # before attention, before the network
    joined: str  # query, key and value
    products: tuple[str, str, str]  # the output of attention; into the network and out of it
    masks: tuple[str, ...]  # what older ones hold of what is computed
    turned: bool = False  # a matrix multiplies from the right
    by_head: bool = False  # joined: all of one head, then all of the next

    def cut(self, joined: Tensor, heads: int) -> Tensor:
        """Query, key and value of all heads above each other, of what is joined in their way."""
        if not self.by_head:
            return joined
        return joined.view(heads, 3, -1, *joined.shape[1:]).transpose(0, 1).reshape(joined.shape)

    def mixed(self, cut: Tensor, heads: int) -> Tensor:
        """And back."""
        if not self.by_head:
            return cut
        return cut.view(3, heads, -1, *cut.shape[1:]).transpose(0, 1).reshape(cut.shape)


PRODUCTS = ("attention.out", "feed_forward.inner", "feed_forward.outer")  # what ours are called
NORMS = ("around_attention.norm", "around_feed_forward.norm")
GPT2 = Names(
    "GPT-2",
    "transformer.",
    "wte",
    "wpe",
    "ln_f",
    "lm_head",
    "h",
    ("ln_1", "ln_2"),
    "attn.c_attn",
    ("attn.c_proj", "mlp.c_fc", "mlp.c_proj"),
    ("attn.bias", "attn.masked_bias"),
    turned=True,
)
NEOX = Names(
    "GPT-NeoX",
    "gpt_neox.",
    "embed_in",
    "",
    "final_layer_norm",
    "embed_out",
    "layers",
    ("input_layernorm", "post_attention_layernorm"),
    "attention.query_key_value",
    ("attention.dense", "mlp.dense_h_to_4h", "mlp.dense_4h_to_h"),
    ("attention.bias", "attention.masked_bias", "attention.rotary_emb.inv_freq"),
    by_head=True,
)


def read(folder: Path) -> Loaded:
    """The model in a folder that transformers wrote."""
    tree = read_json(folder / "config.json")
    turning = tree.get("model_type") == "gpt_neox"
    names = NEOX if turning else GPT2
    own = _neox(tree, folder) if turning else _gpt2(tree, folder)
    common = {"task": "language", "model.kind": "decoder", "model.encoder_layers": 0}
    settings = common | own | {"model.scale_embedding": False}
    config = settle(settings, folder / "config.json", f"{names.what} folder")
    tokenizer = byte_level.read(folder, tree)
    taking = Taking(
        {name.removeprefix(names.prefix): tensor for name, tensor in read_tensors(folder).items()}, folder
    )
    apart = config.model.tied == "none"
    if not apart:
        taking.drop(f"{names.output}.weight")  # the embeddings again
    for layer in range(config.model.decoder_layers):
        for name in names.masks:
            taking.drop(f"{names.layers}.{layer}.{name}")
    shape = config.model
    ours = _tensors(taking, names, shape.decoder_layers, shape.d_model, shape.n_heads)
    output = [("own_output", taking.take(f"{names.output}.weight"))] if apart else []
    model = taking.model(config, chain(output, ours), names.what)
    return Loaded(config, model, tokenizer)


def _gpt2(tree: dict[str, Any], folder: Path) -> dict[str, Any]:
    width, length = tree.get("n_embd", 768), tree.get("n_positions", 1024)
    _refuse(tree, folder, {"scale_attn_by_inverse_layer_idx": False, "scale_attn_weights": True})
    return {
        "model.d_model": width,
        "model.n_heads": tree.get("n_head", 12),
        "model.decoder_layers": tree.get("n_layer", 12),
        "model.d_ff": tree.get("n_inner") or (4 * width if isinstance(width, int) else None),
        "model.vocab_size": tree.get("vocab_size", 50257),
        "model.activation": _activation(tree, "activation_function", "gelu_new", folder),
        "model.norm_eps": tree.get("layer_norm_epsilon", 1e-5),
        "model.tied": "all" if tree.get("tie_word_embeddings", True) else "none",
        "model.dropout": tree.get("resid_pdrop", 0.1),
        "positions.kind": "learned",
        "positions.max_length": length,
        "data.context": length,
    }


def _neox(tree: dict[str, Any], folder: Path) -> dict[str, Any]:
    rope = tree.get("rope_parameters")
    rope = rope if isinstance(rope, dict) else {}
    turned = rope.get("partial_rotary_factor", tree.get("rotary_pct", 0.25))
    theta = rope.get("rope_theta", tree.get("rotary_emb_base", THETA))
    told = tree | {"rope_type": rope.get("rope_type", "default"), "rotary_pct": turned, "rope_theta": theta}
    plain = {"rope_type": "default", "rotary_pct": 1.0, "rope_theta": THETA, "rope_scaling": None}
    _refuse(told, folder, plain | {"use_parallel_residual": False, "attention_bias": True}, always=True)
    length = tree.get("max_position_embeddings", 2048)
    return {
        "model.d_model": tree.get("hidden_size"),
        "model.n_heads": tree.get("num_attention_heads"),
        "model.decoder_layers": tree.get("num_hidden_layers"),
        "model.d_ff": tree.get("intermediate_size"),
        "model.vocab_size": tree.get("vocab_size"),
        "model.activation": _activation(tree, "hidden_act", "gelu", folder),
        "model.norm_eps": tree.get("layer_norm_eps", 1e-5),
        "model.tied": "all" if tree.get("tie_word_embeddings", False) else "none",
        "model.dropout": tree.get("hidden_dropout", 0.0),
        "positions.kind": "rotary",
        "positions.max_length": length,
        "data.context": length,
    }


def _refuse(tree: dict[str, Any], folder: Path, plain: dict[str, Any], *, always: bool = False) -> None:
    """What ours cannot do, by the name of the setting; what is not said is plain, but for `always`."""
    for name, value in plain.items():
        said = tree.get(name, _UNSAID.get(name, value) if always else value)
        if said != value:
            raise ModelError(f"{folder}: {name} {shown(said)} is not supported; ours has {shown(value)}")


_UNSAID = {"use_parallel_residual": True}  # of GPT-NeoX


def _activation(tree: dict[str, Any], key: str, default: str, folder: Path) -> str:
    said = tree.get(key, default)
    if not isinstance(said, str) or said not in _OURS:
        raise ModelError(f"{folder}: {key} {shown(said)} is not supported; there are {', '.join(_OURS)}")
    return _OURS[said]


def _tensors(
    taking: Taking, names: Names, layers: int, width: int, heads: int
) -> Iterator[tuple[str, Tensor]]:
    """Our tensors by name, made of theirs."""
    yield "embedding.weight", taking.take(f"{names.embedding}.weight")
    if names.places:
        yield "embedding.positions.table", taking.take(f"{names.places}.weight")
    for kind in ("weight", "bias"):
        turned = names.turned and kind == "weight"
        yield f"decoder_norm.{kind}", taking.take(f"{names.norm}.{kind}")
        for i in range(layers):
            here, there = f"decoder.{i}", f"{names.layers}.{i}"
            joined = taking.take(f"{there}.{names.joined}.{kind}", turned=turned)
            if names.by_head and len(joined) != 3 * width:
                raise ModelError(f"{taking.folder}: {names.joined} has {len(joined)} rows, not 3 x {width}")
            joined = names.cut(joined, heads)
            yield f"{here}.attention.query.{kind}", joined[:width].clone()
            yield f"{here}.attention.key_value.{kind}", joined[width:].clone()
            for ours, theirs in zip(NORMS, names.norms, strict=True):
                yield f"{here}.{ours}.{kind}", taking.take(f"{there}.{theirs}.{kind}")
            for ours, theirs in zip(PRODUCTS, names.products, strict=True):
                yield f"{here}.{ours}.{kind}", taking.take(f"{there}.{theirs}.{kind}", turned=turned)
