"""GPT-2 folders of Hugging Face become model folders of ours (Radford et al. 2019).

Their matrices multiply from the right, query, key and value are one, positions are learned, the norms come
first and the activation is the GELU with a tanh. The tokenizer is `byte_level.py`'s. Which file is read by
whom: `known.py`; written by `decoders.py`.
"""

from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from torch import Tensor

from regard.errors import ModelError, shown
from regard.foreign import read_json
from regard.interop import byte_level
from regard.interop.tensors import Taking, read_tensors, settle
from regard.models.folder import Loaded

_ACTIVATIONS = {
    "gelu_new": "gelu-tanh",
    "gelu_pytorch_tanh": "gelu-tanh",
    "gelu": "gelu",
    "relu": "relu",
    "relu2": "relu2",
    "silu": "swish",
}
WHAT = "GPT-2"


def read(folder: Path) -> Loaded:
    """The model in a folder that transformers wrote."""
    tree = read_json(folder / "config.json")
    activation = tree.get("activation_function", "gelu_new")
    if activation not in _ACTIVATIONS:
        known = ", ".join(_ACTIVATIONS)
        raise ModelError(
            f"{folder}: activation_function {shown(activation)} is not supported; there are {known}"
        )
    for name, plain in (("scale_attn_by_inverse_layer_idx", False), ("scale_attn_weights", True)):
        if tree.get(name, plain) is not plain:
            raise ModelError(f"{folder}: {name} {shown(tree[name])} is not supported")
    width = tree.get("n_embd", 768)
    settings = {
        "task": "language",
        "model.kind": "decoder",
        "model.d_model": width,
        "model.n_heads": tree.get("n_head", 12),
        "model.decoder_layers": tree.get("n_layer", 12),
        "model.encoder_layers": 0,
        "model.d_ff": tree.get("n_inner") or (4 * width if isinstance(width, int) else None),
        "model.vocab_size": tree.get("vocab_size", 50257),
        "model.activation": _ACTIVATIONS[activation],
        "model.norm_eps": tree.get("layer_norm_epsilon", 1e-5),
        "model.scale_embedding": False,
        "model.tied": "all" if tree.get("tie_word_embeddings", True) else "none",
        "model.dropout": tree.get("resid_pdrop", 0.1),
        "positions.kind": "learned",
        "positions.max_length": tree.get("n_positions", 1024),
        "data.context": tree.get("n_positions", 1024),
    }
    config = settle(settings, folder / "config.json", f"{WHAT} folder")
    tokenizer = byte_level.read(folder, tree)
    theirs = read_tensors(folder)
    cut = {name.removeprefix("transformer."): tensor for name, tensor in theirs.items()}
    taking = Taking(cut, folder)
    apart = config.model.tied == "none"
    if not apart:
        taking.drop("lm_head.weight")  # the embeddings again
    for layer in range(config.model.decoder_layers):
        for name in ("bias", "masked_bias"):  # older ones hold their masks
            taking.drop(f"h.{layer}.attn.{name}")
    ours = _tensors(taking, config.model.decoder_layers, config.model.d_model)
    output = [("own_output", taking.take("lm_head.weight"))] if apart else []
    model = taking.model(config, chain(output, ours), WHAT)
    return Loaded(config, model, tokenizer)


def _tensors(taking: Taking, layers: int, width: int) -> Iterator[tuple[str, Tensor]]:
    """Our tensors by name, made of theirs."""
    yield "embedding.weight", taking.take("wte.weight")
    yield "embedding.positions.table", taking.take("wpe.weight")
    for kind in ("weight", "bias"):
        yield f"decoder_norm.{kind}", taking.take(f"ln_f.{kind}")
    for i in range(layers):
        here, there = f"decoder.{i}", f"h.{i}"
        for kind in ("weight", "bias"):
            turned = kind == "weight"
            joined = taking.take(f"{there}.attn.c_attn.{kind}", turned=turned)
            yield f"{here}.attention.query.{kind}", joined[:width].clone()
            yield f"{here}.attention.key_value.{kind}", joined[width:].clone()
            yield f"{here}.around_attention.norm.{kind}", taking.take(f"{there}.ln_1.{kind}")
            yield f"{here}.around_feed_forward.norm.{kind}", taking.take(f"{there}.ln_2.{kind}")
            for ours, name in (
                ("attention.out", "attn.c_proj"),
                ("feed_forward.inner", "mlp.c_fc"),
                ("feed_forward.outer", "mlp.c_proj"),
            ):
                yield f"{here}.{ours}.{kind}", taking.take(f"{there}.{name}.{kind}", turned=turned)
