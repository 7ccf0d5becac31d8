"""Llama models (Touvron et al. 2023) become model folders of ours: Hugging Face's folders, llama2.c's files.

Rotary positions, root mean squares in front, gates, no biases; groups of heads may share their keys. llama2.c
turns neighbouring dimensions where we turn halves, so its rows of queries and keys are put in another order.
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.config import Config
from regard.errors import ModelError, shown
from regard.foreign import LONGEST_TOKEN, MOST_JSON, check_strings, read_bytes, read_json
from regard.interop import byte_level, sentencepiece
from regard.interop.tensors import Taking, read_tensors, settle
from regard.models.folder import Loaded
from regard.text.normalise import SPACE_MARK
from regard.text.pieces import PieceModel, SentencePieces
from regard.text.tokenizer import Specials, Tokenizer

WHAT = "Llama"
THETA = 10000.0  # of the slowest turn; the angles of ours
_HEADER = struct.Struct("<7i")  # of llama2.c: dim, hidden_dim, layers, heads, kv_heads, vocabulary, length
UNKNOWN, BEGIN, END = range(3)
_FIRST = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]  # in every vocabulary of Llama


def read(folder: Path) -> Loaded:
    """The model in a folder that transformers wrote."""
    tree = read_json(folder / "config.json")
    _refuse(tree, folder)
    settings = _settings(
        tree.get("hidden_size"),
        tree.get("intermediate_size"),
        tree.get("num_hidden_layers"),
        (tree.get("num_attention_heads"), tree.get("num_key_value_heads")),
        tree.get("vocab_size"),
    )
    settings |= {
        "model.norm_eps": tree.get("rms_norm_eps", 1e-6),
        "model.tied": "all" if tree.get("tie_word_embeddings", False) else "none",
        "positions.max_length": tree.get("max_position_embeddings", 2048),
        "data.context": tree.get("max_position_embeddings", 2048),
    }
    config = settle(settings, folder / "config.json", f"{WHAT} folder")
    tokenizer = _tokenizer(folder, tree)
    taking = Taking(read_tensors(folder), folder)
    if config.model.tied == "all":
        taking.drop("lm_head.weight")
    for i in range(config.model.decoder_layers):
        taking.drop(f"model.layers.{i}.self_attn.rotary_emb.inv_freq")
    return Loaded(config, taking.model(config, _tensors(taking, config), WHAT), tokenizer)


def _refuse(tree: dict[str, Any], folder: Path) -> None:
    """What our Llama cannot do, by the name of the setting."""
    rope = tree.get("rope_parameters") or {}
    width, heads = tree.get("hidden_size"), tree.get("num_attention_heads")
    own = width // heads if isinstance(width, int) and isinstance(heads, int) and heads > 0 else None
    for name, value, plain in (
        ("hidden_act", tree.get("hidden_act", "silu"), "silu"),
        ("attention_bias", tree.get("attention_bias", False), False),
        ("mlp_bias", tree.get("mlp_bias", False), False),
        ("rope_scaling", tree.get("rope_scaling"), None),
        ("rope_type", rope.get("rope_type", "default") if isinstance(rope, dict) else rope, "default"),
        ("rope_theta", (rope if isinstance(rope, dict) else {}).get("rope_theta", THETA), THETA),
        ("rope_theta", tree.get("rope_theta") or THETA, THETA),
        ("head_dim", tree.get("head_dim") or own, own),
    ):
        if value != plain:
            raise ModelError(f"{folder}: {name} {shown(value)} is not supported; ours has {shown(plain)}")


def _settings(width: Any, hidden: Any, layers: Any, heads: tuple[Any, Any], size: Any) -> dict[str, Any]:
    """The config of every Llama of this shape."""
    return {
        "task": "language",
        "model.kind": "decoder",
        "model.d_model": width,
        "model.n_heads": heads[0],
        "model.kv_heads": heads[1] if heads[1] is not None else heads[0],
        "model.decoder_layers": layers,
        "model.encoder_layers": 0,
        "model.d_ff": hidden,
        "model.vocab_size": size,
        "model.activation": "swiglu",
        "model.norm": "pre-rms",
        "model.bias": False,
        "model.scale_embedding": False,
        "model.dropout": 0.0,
        "positions.kind": "rotary",
    }


def _tensors(taking: Taking, config: Config) -> Iterator[tuple[str, Tensor]]:
    """Our tensors by name, made of theirs."""
    yield "embedding.weight", taking.take("model.embed_tokens.weight")
    yield "decoder_norm.weight", taking.take("model.norm.weight")
    if config.model.tied != "all":
        yield "own_output", taking.take("lm_head.weight")
    for i in range(config.model.decoder_layers):
        here, there = f"decoder.{i}", f"model.layers.{i}"
        yield f"{here}.around_attention.norm.weight", taking.take(f"{there}.input_layernorm.weight")
        yield (
            f"{here}.around_feed_forward.norm.weight",
            taking.take(f"{there}.post_attention_layernorm.weight"),
        )
        yield f"{here}.attention.query.weight", taking.take(f"{there}.self_attn.q_proj.weight")
        keys = [f"{there}.self_attn.{name}_proj.weight" for name in "kv"]
        yield f"{here}.attention.key_value.weight", taking.join(keys)
        yield f"{here}.attention.out.weight", taking.take(f"{there}.self_attn.o_proj.weight")
        gate = [f"{there}.mlp.{name}_proj.weight" for name in ("gate", "up")]
        yield f"{here}.feed_forward.inner.weight", taking.join(gate)
        yield f"{here}.feed_forward.outer.weight", taking.take(f"{there}.mlp.down_proj.weight")


# Tokenizers --------------------------------------------------------------------------------------


def _tokenizer(folder: Path, tree: dict[str, Any]) -> Tokenizer:
    """The SentencePiece model of a folder, as such a file or inside a tokenizer.json; or bytes, merged."""
    path = folder / "tokenizer.model"
    if path.exists():
        model = sentencepiece.read(path)
        return _pieces(sentencepiece.names(path), model)
    path = folder / "tokenizer.json"
    whole = read_json(path, most=MOST_JSON)
    inner = whole.get("model")
    ids = inner.get("vocab") if isinstance(inner, dict) else None
    if not isinstance(ids, dict):
        raise ModelError(f"{path} holds no byte-pair vocabulary of Llama's kind, which spells in bytes")
    if SPACE_MARK not in ids:
        return byte_level.read(folder, tree, END)
    if not all(type(number) is int for number in ids.values()) or sorted(ids.values()) != [*range(len(ids))]:
        raise ModelError(f"{path} must give each token an id of its own, from 0 to {len(ids) - 1}")
    names = sorted(ids, key=ids.__getitem__)
    return _of_scores(names, [-float(number) for number in range(len(names))])


def _of_scores(names: list[str], scores: list[float]) -> SentencePieces:
    """A tokenizer that merges what has the highest score; specials come first, then the bytes."""
    check_strings(names, "a piece")
    text = [
        (name, score)
        for number, (name, score) in enumerate(zip(names, scores, strict=True))
        if number > END and not (len(name) == 6 and name.startswith("<0x"))
    ]
    return _pieces(names, PieceModel("bpe", text, {}, squeeze=False, byte_fallback=True))


def _pieces(names: list[str], model: PieceModel) -> SentencePieces:
    specials = Specials(pad=END, begin=BEGIN, end=END, never=(UNKNOWN, BEGIN))
    return SentencePieces((model, model), (names, names), specials, (UNKNOWN, UNKNOWN))


# llama2.c ----------------------------------------------------------------------------------------


def read_file(path: Path) -> Loaded:
    """The model in a file of llama2.c, with the tokenizer.bin that lies beside it."""
    data = read_bytes(path, 2**36)
    if len(data) < _HEADER.size:
        raise ModelError(f"{path} is too short for a model of llama2.c")
    width, hidden, layers, heads, kv_heads, size, length = _HEADER.unpack_from(data)
    shared, size = size > 0, abs(size)
    numbers = (width, hidden, layers, heads, kv_heads, size, length)
    if min(numbers) < 1 or max(numbers) > 2**24 or width % heads or heads % kv_heads:
        raise ModelError(f"{path} is no model of llama2.c: its first numbers say {shown(numbers)}")
    settings = _settings(width, hidden, layers, (heads, kv_heads), size)
    settings |= {
        "model.tied": "all" if shared else "none",
        "positions.max_length": length,
        "data.context": length,
    }
    config = settle(settings, path, "model of llama2.c")
    parts = _parts(config, length, shared=shared)
    wanted = _HEADER.size + 4 * sum(rows * columns for _, rows, columns in parts)
    if len(data) != wanted:
        raise ModelError(f"{path} has {len(data):,} bytes, a model of its shape has {wanted:,}")
    taking = Taking(_named(data, parts, config), path)
    return Loaded(config, taking.model(config, _tensors(taking, config), WHAT), _vocabulary(path, size))


def _parts(config: Config, length: int, *, shared: bool) -> list[tuple[str, int, int]]:
    """What the file holds, in its order: a name, and how many rows of how many numbers."""
    shape = config.model
    width, layers, keys = shape.d_model, shape.decoder_layers, shape.kv_heads * shape.d_model // shape.n_heads
    half = width // shape.n_heads // 2
    parts = [
        ("embed_tokens", shape.vocab_size, width),
        ("input_layernorm", layers, width),
        ("self_attn.q_proj", layers * width, width),
        ("self_attn.k_proj", layers * keys, width),
        ("self_attn.v_proj", layers * keys, width),
        ("self_attn.o_proj", layers * width, width),
        ("post_attention_layernorm", layers, width),
        ("mlp.gate_proj", layers * shape.d_ff, width),
        ("mlp.down_proj", layers * width, shape.d_ff),
        ("mlp.up_proj", layers * shape.d_ff, width),
        ("norm", 1, width),
        ("", 2 * length, half),  # sines and cosines
    ]
    return parts if shared else [*parts, ("lm_head", shape.vocab_size, width)]


def _named(data: bytes, parts: list[tuple[str, int, int]], config: Config) -> dict[str, Tensor]:
    """The tensors under the names of a Hugging Face folder."""
    found: dict[str, Tensor] = {}
    place, layers = _HEADER.size, config.model.decoder_layers
    for name, rows, columns in parts:
        values = np.frombuffer(data, "<f4", rows * columns, place).reshape(rows, columns)
        place += 4 * rows * columns
        tensor = torch.from_numpy(values.astype(np.float32))
        if "." in name or name.endswith("layernorm"):
            for i, part in enumerate(tensor.chunk(layers)):
                found[f"model.layers.{i}.{name}.weight"] = _halves(name, part, config).squeeze(0).clone()
        elif name:
            key = f"{name}.weight" if name == "lm_head" else f"model.{name}.weight"
            found[key] = tensor.squeeze(0)
    return found


def _halves(name: str, matrix: Tensor, config: Config) -> Tensor:
    """Rows of queries and keys: pairs of neighbours that are turned become pairs of halves."""
    if name not in ("self_attn.q_proj", "self_attn.k_proj"):
        return matrix
    width = config.model.d_model // config.model.n_heads
    heads = matrix.view(-1, width // 2, 2, matrix.shape[1])  # (heads, pairs, 2, D)
    return heads.transpose(1, 2).reshape(matrix.shape)


def _vocabulary(path: Path, size: int) -> SentencePieces:
    """The tokenizer.bin of llama2.c: a score, a length and the bytes of each piece, spaces as they are."""
    path = path.parent / "tokenizer.bin"
    if not path.exists():
        raise ModelError(f"{path} is missing; llama2.c keeps its vocabulary there")
    data, place = read_bytes(path, 2**26), 4
    names, scores = [], []
    try:
        for _ in range(size):
            score, length = struct.unpack_from("<fi", data, place)
            if not 0 <= length <= LONGEST_TOKEN or place + 8 + length > len(data):
                raise ValueError
            names.append(data[place + 8 : place + 8 + length].decode().replace(" ", "\u2581"))
            scores.append(score)
            place += 8 + length
    except (struct.error, ValueError) as error:
        raise ModelError(f"{path} does not hold the {size:,} pieces of the model; copy it again") from error
    names[: len(_FIRST)] = _FIRST[: len(names)]  # there each is written as what it spells
    return _of_scores(names, scores)
