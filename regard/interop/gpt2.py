"""GPT-2 folders of Hugging Face become model folders of ours (Radford et al. 2019).

Their matrices multiply from the right, query, key and value are one, positions are learned, the norms come
first and the activation is the GELU with a tanh. The tokenizer is `regard.text.running`'s, from a
tokenizer.json or from vocab.json and merges.txt. Which file is read by whom: `known.py`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch import Tensor

from regard.errors import ModelError, shown
from regard.foreign import MOST_JSON, MOST_MERGED, MOST_MERGES, check_strings, read_bytes, read_json
from regard.interop.tensors import Taking, read_tensors, settle
from regard.models.folder import Loaded
from regard.text.running import RunningText
from regard.text.tokenizer import Specials

_ACTIVATIONS = {"gelu_new": "gelu-tanh", "gelu_pytorch_tanh": "gelu-tanh", "gelu": "gelu", "relu": "relu"}
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
        "model.dropout": tree.get("resid_pdrop", 0.1),
        "positions.kind": "learned",
        "positions.max_length": tree.get("n_positions", 1024),
    }
    config = settle(settings, folder / "config.json", f"{WHAT} folder")
    tokenizer = _tokenizer(folder, tree)
    theirs = read_tensors(folder)
    cut = {name.removeprefix("transformer."): tensor for name, tensor in theirs.items()}
    taking = Taking(cut, folder)
    taking.drop("lm_head.weight")  # the embeddings again
    for layer in range(config.model.decoder_layers):
        for name in ("bias", "masked_bias"):  # older ones hold their masks
            taking.drop(f"h.{layer}.attn.{name}")
    model = taking.model(config, _tensors(taking, config.model.decoder_layers, config.model.d_model), WHAT)
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


def _tokenizer(folder: Path, tree: dict[str, Any]) -> RunningText:
    """What GPT2Tokenizer does with the folder."""
    path = folder / "tokenizer.json"
    added: dict[str, Any] = {}
    if path.exists():
        whole = read_json(path, most=MOST_JSON)
        model = whole.get("model")
        if not isinstance(model, dict) or model.get("type", "BPE") != "BPE":
            raise ModelError(f"{path} holds no byte-pair vocabulary; give one of GPT-2's kind")
        ids, merges = model.get("vocab"), model.get("merges")
        more = whole.get("added_tokens") or []
        if not isinstance(more, list) or not all(isinstance(each, dict) for each in more):
            raise ModelError(f"{path}: added_tokens must be a list of objects")
        added = {str(each.get("content")): each.get("id") for each in more}
    else:
        path = folder / "vocab.json"
        ids, merges = read_json(path, most=MOST_JSON), _merges(folder / "merges.txt")
    end = tree.get("eos_token_id", 50256)
    return build(ids, merges, added, end, path)


def build(ids: Any, merges: Any, added: dict[str, Any], end: Any, path: Path) -> RunningText:
    """The tokenizer of tokens with ids, pairs to merge and tokens beside them; `end` closes a document."""
    if not isinstance(ids, dict) or not isinstance(merges, list) or len(merges) > MOST_MERGES:
        raise ModelError(f"{path} must hold tokens with their ids and at most {MOST_MERGES:,} merges")
    ids = ids | added
    pieces = sorted(ids, key=lambda piece: (type(ids[piece]) is int, ids[piece]))
    if [ids[piece] for piece in pieces] != list(range(len(pieces))):
        raise ModelError(f"{path} must give each token an id of its own, from 0 to {len(pieces) - 1}")
    check_strings(pieces, "a token")
    pairs = [tuple(each.split(" ")) if isinstance(each, str) else each for each in merges]
    if not all(isinstance(pair, list | tuple) and len(pair) == 2 for pair in pairs):
        raise ModelError(f"{path}: a merge must be two tokens")
    joined = [(str(left), str(right)) for left, right in pairs]
    if sum(len(left) + len(right) for left, right in joined) > MOST_MERGED:
        raise ModelError(f"{path}: its merges are longer than is read")
    unknown = next((pair for pair in joined if not {*pair, "".join(pair)} <= ids.keys()), None)
    if unknown is not None:
        raise ModelError(f"{path}: the merge of {shown(unknown[0])} and {shown(unknown[1])} has no token")
    if type(end) is not int or not 0 <= end < len(pieces):
        raise ModelError(f"{path}: the end {shown(end)} is not one of {len(pieces)} tokens")
    return RunningText(pieces, joined, Specials(pad=end, begin=end, end=end, never=()))


def _merges(path: Path) -> list[str]:
    """The lines of a merges.txt, without its head."""
    try:
        lines = read_bytes(path, MOST_JSON).decode().splitlines()
    except UnicodeDecodeError as error:
        raise ModelError(f"{path} is no UTF-8; copy the folder again") from error
    return [line for line in lines if line and not line.startswith("#version")]
