"""Marian folders of Hugging Face (opus-mt and its like) become model folders of ours.

Nothing in them can run code: weights are safetensors, or a pickle that is opened with weights only; the
SentencePiece models are read as data. Shapes are compared before anything is built. Names of tensors:
`huggingface.py`; the tokenizer: `sentencepiece.py` and `regard.text.pieces`.
"""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from regard.attention.positions import sinusoids
from regard.config import Config
from regard.errors import ModelError, shown
from regard.foreign import MOST_JSON, read_bytes, read_json
from regard.interop import sentencepiece
from regard.interop.huggingface import SIDES, names
from regard.interop.tensors import read_tensors, settle
from regard.models.folder import Loaded
from regard.models.skeleton import fill, skeleton
from regard.text.pieces import SentencePieces
from regard.text.tokenizer import Specials, Tokenizer
from regard.text.vocabulary import RESERVED, Vocabulary, all_merges

KINDS = {"marian": "post", "pegasus": "pre"}
_ACTIVATIONS = {"relu": "relu", "swish": "swish", "silu": "swish", "gelu": "gelu"}
_TIED = {(True, True): "all", (True, False): "embeddings", (False, True): "target", (False, False): "none"}
_BIAS = "final_logits_bias"
_COPIES = (
    "model.shared.weight",
    *(f"model.{side}.embed_tokens.weight" for side in SIDES),
    *(f"model.{side}.embed_positions.weight" for side in SIDES),
    "lm_head.weight",
    _BIAS,
)


def read(folder: Path) -> Loaded:
    """The model in a folder that transformers wrote."""
    tree = read_json(folder / "config.json")
    kind = tree.get("model_type")
    if not isinstance(kind, str) or kind not in KINDS:
        raise ModelError(f"{folder} holds a model of type {shown(kind)}, not one of {', '.join(KINDS)}")
    theirs = read_tensors(folder)
    more = (
        read_json(folder / "generation_config.json") if (folder / "generation_config.json").exists() else {}
    )
    config = _config(tree, tree | more, theirs, folder)
    tokenizer = _tokenizer(folder, tree | more, config)
    model = skeleton(config, len(theirs), folder)
    fill(model, _state(theirs, config, model, folder))
    return Loaded(config, model.eval(), tokenizer)


# Settings ----------------------------------------------------------------------------------------


def _config(tree: dict[str, Any], search: dict[str, Any], theirs: dict[str, Tensor], folder: Path) -> Config:
    """Our config of their settings; what they leave out has their defaults."""
    activation = tree.get("activation_function", "gelu")
    if not isinstance(activation, str) or activation not in _ACTIVATIONS:
        known = ", ".join(_ACTIVATIONS)
        raise ModelError(
            f"{folder}: activation_function {shown(activation)} is not supported; there are {known}"
        )
    tied = bool(tree.get("tie_word_embeddings", True))
    shared = bool(tree.get("share_encoder_decoder_embeddings", True))
    if not tied and all(f"model.{side}.embed_tokens.weight" in theirs for side in SIDES):
        shared = False  # transformers shares nothing then, whatever it calls it
    bias = theirs.get(_BIAS)
    settings = {
        "model.norm": KINDS[tree["model_type"]],
        "model.vocab_size": tree.get("vocab_size"),
        "model.d_model": tree.get("d_model"),
        "model.n_heads": tree.get("encoder_attention_heads"),
        "model.decoder_heads": tree.get("decoder_attention_heads"),
        "model.encoder_layers": tree.get("encoder_layers"),
        "model.decoder_layers": tree.get("decoder_layers"),
        "model.d_ff": tree.get("encoder_ffn_dim"),
        "model.decoder_d_ff": tree.get("decoder_ffn_dim"),
        "model.activation": _ACTIVATIONS[activation],
        "model.dropout": tree.get("dropout", 0.1),
        "model.tied": _TIED[shared, tied],
        "model.target_vocab_size": 0 if shared else tree.get("decoder_vocab_size") or tree.get("vocab_size"),
        "model.output_bias": bias is not None and bool(bias.any()),
        "model.scale_embedding": bool(tree.get("scale_embedding", False)),
        "attention.dropout": tree.get("attention_dropout", 0.0),
        "positions.max_length": tree.get("max_position_embeddings", 1024),
        "decode.max_source": tree.get("max_position_embeddings", 1024),
        "decode.length_penalty": search.get("length_penalty") or 1.0,
        "decode.beam": search.get("num_beams") or 4,
    }
    return settle(settings, folder / "config.json", "Marian folder")


def _specials(tree: dict[str, Any], folder: Path) -> Specials:
    """Their special ids; the decoder begins with padding unless told otherwise."""
    end = tree.get("eos_token_id", 0)
    end = end[0] if isinstance(end, list) and end else end
    pad = tree.get("pad_token_id")
    begin = tree.get("decoder_start_token_id", pad)
    banned = tree.get("bad_words_ids") or []
    rows = banned if isinstance(banned, list) else [banned]
    # What is banned only after something else (several ids in a row) cannot be kept apart; padding never is.
    never = [row[0] for row in rows if isinstance(row, list) and len(row) == 1] or [pad]
    ids: list[Any] = [pad, begin, end, *never]
    if not all(type(number) is int for number in ids):
        raise ModelError(
            f"{folder / 'config.json'}: pad_token_id, eos_token_id and the like must be whole numbers"
        )
    return Specials(ids[0], ids[1], ids[2], tuple(dict.fromkeys(ids[3:])))


# Tokenizer ---------------------------------------------------------------------------------------


def _tokenizer(folder: Path, tree: dict[str, Any], config: Config) -> Tokenizer:
    """What MarianTokenizer does with the folder; our own tokenizer where the folder holds one."""
    if not (folder / "source.spm").exists() and (folder / "tokenizer.json").exists():
        return _ours(folder / "tokenizer.json")
    settings_file = folder / "tokenizer_config.json"
    settings = read_json(settings_file) if settings_file.exists() else {}
    source = _vocabulary(folder / "vocab.json", config.model.vocab_size)
    target, room = source, config.model.target_vocab_size or config.model.vocab_size
    if settings.get("separate_vocabs"):
        target = _vocabulary(folder / "target_vocab.json", room)
    elif len(source) > room:
        raise ModelError(f"{folder / 'vocab.json'} has {len(source)} tokens, the decoder has room for {room}")
    models = sentencepiece.read(folder / "source.spm"), sentencepiece.read(folder / "target.spm")
    if models[0].kind == "bpe" and tuple(source[: len(RESERVED)]) == RESERVED:
        return Tokenizer(Vocabulary(tuple(source), all_merges(source)))
    unknown = settings.get("unk_token", "<unk>")
    unknown = unknown.get("content") if isinstance(unknown, dict) else unknown
    if unknown not in source or unknown not in target:
        raise ModelError(f"{folder / 'vocab.json'} has no {shown(unknown)}, the unknown token")
    specials = _specials(tree, folder)
    sizes = len(source), len(target)
    for number, size in (
        (specials.pad, sizes[0]),
        (specials.end, min(sizes)),
        (max(specials.never), sizes[1]),
        (specials.begin, room),
    ):
        if not 0 <= number < size:
            raise ModelError(
                f"{folder}: the special id {shown(number)} is not in a vocabulary of {size} tokens"
            )
    return SentencePieces(models, (source, target), specials, (source.index(unknown), target.index(unknown)))


def _ours(path: Path) -> Tokenizer:
    try:
        return Tokenizer.from_json(read_bytes(path, MOST_JSON).decode())
    except (ModelError, UnicodeDecodeError) as error:
        raise ModelError(f"{path}: {error}") from error


def _vocabulary(path: Path, room: int) -> list[str]:
    """The tokens in the order of their ids."""
    ids = read_json(path, most=MOST_JSON)
    if not all(type(number) is int for number in ids.values()) or sorted(ids.values()) != list(
        range(len(ids))
    ):
        raise ModelError(f"{path} must give each token an id of its own, from 0 to {len(ids) - 1}")
    if len(ids) > room:
        raise ModelError(
            f"{path} has {len(ids)} tokens, the model has room for {room}; they do not belong together"
        )
    return sorted(ids, key=ids.__getitem__)


# Weights -----------------------------------------------------------------------------------------


def _state(theirs: dict[str, Tensor], config: Config, model: nn.Module, folder: Path) -> dict[str, Tensor]:
    """Our tensors, if theirs are exactly those that their config asks for."""
    own, state = model.state_dict(), {}
    used = set(_COPIES)
    for ours, parts in names(config.model):
        found = [_part(theirs, name, config.model.tied, folder) for name in parts]
        used |= set(parts)
        want = (own[ours].shape[0] // len(parts), *own[ours].shape[1:])
        for name, tensor in zip(parts, found, strict=True):
            if tuple(tensor.shape) != want:
                raise ModelError(f"{folder}: {name} is {tuple(tensor.shape)}, config.json asks for {want}")
        state[ours] = torch.cat([tensor.float() for tensor in found])
    if config.model.output_bias:
        state["output_bias"] = _bias(theirs[_BIAS], own["output_bias"], folder)
    strange = sorted(theirs.keys() - used)
    if strange:
        raise ModelError(f"{folder} holds the tensor {shown(strange[0])}, which a Marian model does not have")
    _check_positions(theirs, config, folder)
    return state


def _part(theirs: dict[str, Tensor], name: str, tied: str, folder: Path) -> Tensor:
    """One of their tensors; of matrices that are tied a file may hold any."""
    same = {"all": _COPIES[:3] + _COPIES[5:6], "embeddings": _COPIES[:3], "target": (_COPIES[2], _COPIES[5])}
    for other in (name, *(same.get(tied, ()) if name in same.get(tied, ()) else ())):
        if other in theirs:
            return theirs[other]
    raise ModelError(f"{folder} lacks the tensor {name} that its config.json asks for")


def _bias(bias: Tensor, own: Tensor, folder: Path) -> Tensor:
    if bias.numel() != own.numel():
        raise ModelError(f"{folder}: {_BIAS} has {bias.numel()} numbers, config.json asks for {own.numel()}")
    return bias.flatten().float()


def _check_positions(theirs: dict[str, Tensor], config: Config, folder: Path) -> None:
    """Positions that are not sinusoids would be another model."""
    for side in SIDES:
        table = theirs.get(f"model.{side}.embed_positions.weight")
        if table is None:
            continue
        if table.dim() != 2 or table.shape[1] != config.model.d_model or len(table) > 10**6:
            raise ModelError(f"{folder}: the positions of the {side} are {tuple(table.shape)}")
        if (table.float() - sinusoids(len(table), config.model.d_model)).abs().max() > 1e-2:
            raise ModelError(
                f"{folder}: the positions of the {side} are not sinusoids; those are not supported"
            )
