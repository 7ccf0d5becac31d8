"""BERT and DistilBERT folders of transformers and sentence-transformers become model folders of ours.

MiniLM, gte and most encoders of sentences are BERTs. Norms stand behind their sub-layers and the embeddings,
positions are learned; the vector of the first token type is in every sum, so it is added to the positions.
With a head for hidden words (BertForMaskedLM) it is a model that fills, without one a sentence encoder, whose
pooling and normalisation modules.json tells. Weights may also lie in an ONNX export: `initialisers.py`.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from torch import Tensor

from regard.config import Config
from regard.errors import ModelError, shown
from regard.foreign import MOST_JSON, loads, read_bytes, read_json
from regard.interop.initialisers import find, read_initialisers
from regard.interop.tensors import PICKLE, WEIGHTS, Taking, read_tensors, settle
from regard.models.folder import Loaded
from regard.text.wordpiece import Cleaning, Marks, WordPieces

_ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu-tanh",
    "gelu_pytorch_tanh": "gelu-tanh",
    "relu": "relu",
    "silu": "swish",
}
_POOLINGS = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "first",
    "pooling_mode_max_tokens": "max",
}
_MARKS = {"pad": "[PAD]", "unknown": "[UNK]", "begin": "[CLS]", "end": "[SEP]", "mask": "[MASK]"}
# What the two call the same thing: the settings, then the tensors of a layer.
_SETTINGS = {
    "bert": (
        "hidden_size",
        "num_attention_heads",
        "num_hidden_layers",
        "intermediate_size",
        "hidden_act",
        "hidden_dropout_prob",
    ),
    "distilbert": ("dim", "n_heads", "n_layers", "hidden_dim", "activation", "dropout"),
}
_LAYER = {
    "bert": {
        "query": "attention.self.query",
        "key": "attention.self.key",
        "value": "attention.self.value",
        "attention.out": "attention.output.dense",
        "around_attention.norm": "attention.output.LayerNorm",
        "feed_forward.inner": "intermediate.dense",
        "feed_forward.outer": "output.dense",
        "around_feed_forward.norm": "output.LayerNorm",
    },
    "distilbert": {
        "query": "attention.q_lin",
        "key": "attention.k_lin",
        "value": "attention.v_lin",
        "attention.out": "attention.out_lin",
        "around_attention.norm": "sa_layer_norm",
        "feed_forward.inner": "ffn.lin1",
        "feed_forward.outer": "ffn.lin2",
        "around_feed_forward.norm": "output_layer_norm",
    },
}
_STACK = {"bert": "encoder.layer", "distilbert": "transformer.layer"}
# By the head of the one that knows hidden words: its product, its norm, its bias.
_HEAD = {
    "bert": (
        "cls.predictions.transform.dense",
        "cls.predictions.transform.LayerNorm",
        "cls.predictions.bias",
    ),
    "distilbert": ("vocab_transform", "vocab_layer_norm", "vocab_projector.bias"),
}
_UNUSED = (
    "embeddings.position_ids",
    "pooler.dense.weight",
    "pooler.dense.bias",
    "cls.predictions.decoder.weight",
    "cls.predictions.decoder.bias",
    "cls.seq_relationship.weight",
    "cls.seq_relationship.bias",
    "vocab_projector.weight",
)


def read(folder: Path) -> Loaded:
    """The model in a folder that transformers or sentence-transformers wrote."""
    tree = read_json(folder / "config.json")
    kind = str(tree.get("model_type"))
    taking = Taking(_tensors_of(folder, kind), folder)
    head = f"{_HEAD[kind][0]}.weight" in taking.tensors
    for name in _UNUSED:
        taking.drop(name)
    config = _config(folder, tree, kind, fills=head)
    tokenizer = _tokenizer(folder)
    model = taking.model(config, _tensors(taking, config, kind), kind)
    return Loaded(config, model, tokenizer)


def _tensors_of(folder: Path, kind: str) -> dict[str, Tensor]:
    """Their tensors, without the name of the model that some put before them."""
    onnx = None if any((folder / name).exists() for name in (WEIGHTS, PICKLE)) else find(folder)
    theirs = read_tensors(folder) if onnx is None else read_initialisers(onnx)
    cut = {name.removeprefix(f"{kind}."): tensor for name, tensor in theirs.items()}
    return {
        name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias"): each
        for name, each in cut.items()
    }


def _config(folder: Path, tree: dict[str, Any], kind: str, *, fills: bool) -> Config:
    """Our settings of theirs."""
    width, heads, layers, hidden, activation, dropout = (tree.get(name) for name in _SETTINGS[kind])
    if not isinstance(activation, str) or activation not in _ACTIVATIONS:
        known = ", ".join(_ACTIVATIONS)
        raise ModelError(f"{folder}: the activation {shown(activation)} is not supported; there are {known}")
    plain = {
        "position_embedding_type": ("absolute",),
        "is_decoder": (False,),
        "sinusoidal_pos_embds": (False, True),
    }
    for name, taken in plain.items():
        if tree.get(name, taken[0]) not in taken:
            raise ModelError(f"{folder}: {name} {shown(tree[name])} is not supported")
    settings = {
        "task": "masked" if fills else "embed",
        "model.kind": "encoder",
        "model.d_model": width,
        "model.n_heads": heads,
        "model.encoder_layers": layers,
        "model.decoder_layers": 0,
        "model.d_ff": hidden,
        "model.vocab_size": tree.get("vocab_size"),
        "model.activation": _ACTIVATIONS[activation],
        "model.norm": "post",
        "model.norm_eps": tree.get("layer_norm_eps", 1e-12),
        "model.dropout": dropout,
        "attention.dropout": tree.get("attention_probs_dropout_prob", tree.get("attention_dropout", 0.1)),
        "model.scale_embedding": False,
        "model.embedding_norm": True,
        "model.output_transform": fills,
        "model.output_bias": fills,
        "positions.kind": "learned",
        "positions.max_length": tree.get("max_position_embeddings"),
    }
    return settle(settings | _pooling(folder), folder / "config.json", f"{kind} folder")


def _pooling(folder: Path) -> dict[str, Any]:
    """How sentence-transformers makes a vector of a sentence; where it does not say, by the mean."""
    path = folder / "modules.json"
    if not path.exists():
        return {}
    try:
        modules = loads(read_bytes(path, MOST_JSON))
        parts = {str(each["type"]).rpartition(".")[2]: str(each["path"]) for each in modules}
    except (ValueError, TypeError, KeyError) as error:
        raise ModelError(f"{path} is no list of modules; copy the folder again") from error
    strange = sorted(parts.keys() - {"Transformer", "Pooling", "Normalize"})
    if strange:
        raise ModelError(f"{path}: a module {shown(strange[0])} is not supported")
    found: dict[str, Any] = {"embed.normalise": "Normalize" in parts}
    limits = folder / "sentence_bert_config.json"
    if limits.exists() and isinstance(longest := read_json(limits).get("max_seq_length"), int):
        found["embed.max_length"] = longest
    # A stranger's path may lead anywhere: only what lies in the folder is looked at.
    own = next((each for each in folder.iterdir() if each.name == parts.get("Pooling")), None)
    if own is not None and (place := own / "config.json").exists():
        found["embed.pooling"] = _pooling_word(read_json(place), place)
    return found


def _pooling_word(tree: dict[str, Any], path: Path) -> str:
    """Ours for the one that is asked for."""
    asked = [name for name, value in tree.items() if name.startswith("pooling_mode_") and value is True]
    if isinstance(tree.get("pooling_mode"), str):
        asked = [
            f"pooling_mode_{tree['pooling_mode'].removesuffix('_tokens')}_tokens".replace(
                "cls_tokens", "cls_token"
            )
        ]
    if len(asked) != 1 or asked[0] not in _POOLINGS:
        known = ", ".join(_POOLINGS)
        raise ModelError(
            f"{path}: the pooling {shown(', '.join(asked) or None)} is unknown; one of {known} is read"
        )
    return _POOLINGS[asked[0]]


def _tensors(taking: Taking, config: Config, kind: str) -> Iterator[tuple[str, Tensor]]:
    """Our tensors by name, made of theirs."""
    yield "embedding.weight", taking.take("embeddings.word_embeddings.weight")
    places = taking.take("embeddings.position_embeddings.weight")
    if kind == "bert":
        types = taking.take("embeddings.token_type_embeddings.weight")
        if types.dim() != 2 or types.shape[1:] != places.shape[1:] or not len(types):
            raise ModelError(
                f"{taking.folder}: the token types are {tuple(types.shape)}, the places {tuple(places.shape)}"
            )
        places = places + types[0]
    yield "embedding.positions.table", places
    for part in ("weight", "bias"):
        yield f"embedding.norm.{part}", taking.take(f"embeddings.LayerNorm.{part}")
        for i in range(config.model.encoder_layers):
            there, names = f"{_STACK[kind]}.{i}", _LAYER[kind]
            yield f"encoder.{i}.attention.query.{part}", taking.take(f"{there}.{names['query']}.{part}")
            both = [f"{there}.{names[which]}.{part}" for which in ("key", "value")]
            yield f"encoder.{i}.attention.key_value.{part}", taking.join(both)
            for ours in list(names)[3:]:
                yield f"encoder.{i}.{ours}.{part}", taking.take(f"{there}.{names[ours]}.{part}")
    if config.model.output_transform:
        dense, norm, bias = _HEAD[kind]
        for part in ("weight", "bias"):
            yield f"transform.inner.{part}", taking.take(f"{dense}.{part}")
            yield f"transform.norm.{part}", taking.take(f"{norm}.{part}")
        yield "output_bias", taking.take(bias)


def _tokenizer(folder: Path) -> WordPieces:
    """What BertTokenizer does with the folder."""
    path = folder / "tokenizer.json"
    if path.exists():
        whole = read_json(path, most=MOST_JSON)
        model, how = whole.get("model"), whole.get("normalizer") or {}
        # Older files name no type: a WordPiece is the one that has a prefix for what goes on with a word.
        if not isinstance(model, dict) or model.get("type", "WordPiece") != "WordPiece":
            raise ModelError(f"{path} holds no WordPiece vocabulary; give one of BERT's kind")
        if model.get("continuing_subword_prefix", "##") != "##" or not isinstance(how, dict):
            raise ModelError(f"{path} is no tokenizer of BERT's kind")
        return _pieces(model.get("vocab"), _cleaning(how, "lowercase", "handle_chinese_chars"), path)
    path = folder / "vocab.txt"
    try:
        lines = read_bytes(path, MOST_JSON).decode().removesuffix("\n").split("\n")
    except UnicodeDecodeError as error:
        raise ModelError(f"{path} is no UTF-8; copy the folder again") from error
    ids = {line.removesuffix("\r"): number for number, line in enumerate(lines)}
    beside = folder / "tokenizer_config.json"
    tree = read_json(beside) if beside.exists() else {}
    return _pieces(ids, _cleaning(tree, "do_lower_case", "tokenize_chinese_chars"), path)


def _cleaning(tree: dict[str, Any], lower: str, chinese: str) -> Cleaning:
    """What is done to a line first."""
    strip = tree.get("strip_accents")
    return Cleaning(
        tree.get(lower, True) is True,
        strip if isinstance(strip, bool) else None,
        tree.get("clean_text", True) is not False,
        tree.get(chinese, True) is not False,
    )


def _pieces(ids: Any, cleaning: Cleaning, path: Path) -> WordPieces:
    """The tokenizer of pieces with ids."""
    if not isinstance(ids, dict) or any(type(number) is not int for number in ids.values()):
        raise ModelError(f"{path} must hold pieces with their ids")
    pieces = sorted(ids, key=lambda piece: ids[piece])
    if [ids[piece] for piece in pieces] != list(range(len(pieces))):
        raise ModelError(f"{path} must give each piece an id of its own, from 0 to {len(pieces) - 1}")
    missing = [piece for piece in _MARKS.values() if piece not in ids]
    if missing:
        raise ModelError(f"{path} has no piece {missing[0]}; it is no vocabulary of BERT's kind")
    return WordPieces(pieces, Marks(**{name: ids[piece] for name, piece in _MARKS.items()}), cleaning)
