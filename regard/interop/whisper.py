"""Whisper models become folders of ours: Hugging Face's folders, and OpenAI's own .pt files.

    conv, conv -> positions -> encoder layers -> norm       decoder layers with cross-attention, tied output

Keys have no bias there, ours have one of zero (Radford et al. 2022). A .pt is a pickle: torch opens it with
weights only, so that nothing in it can run; it holds no vocabulary, which is looked for beside it and in the
package openai-whisper. Which file is read by whom: `known.py`; used by `regard.tasks.speech.whisper`.
"""

import importlib.util
import pickle
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from regard.config import Config
from regard.errors import ModelError, shown
from regard.foreign import MOST_JSON, read_bytes, read_json
from regard.interop import byte_level
from regard.interop.pickles import refuse_packed, refuse_stretched
from regard.interop.tensors import Taking, read_tensors, settle
from regard.models.folder import Loaded
from regard.text.running import RunningText
from regard.text.whisper import END, read_ranks, whisper_text

WHAT = "Whisper"
ASSETS = {True: "gpt2.tiktoken", False: "multilingual.tiktoken"}  # English alone or not
ENGLISH = 51864  # tokens of a model that knows English alone

# Our part, then what OpenAI and Hugging Face call it.
_LAYER = {
    "attention.query": ("attn.query", "self_attn.q_proj"),
    "attention.key": ("attn.key", "self_attn.k_proj"),
    "attention.value": ("attn.value", "self_attn.v_proj"),
    "attention.out": ("attn.out", "self_attn.out_proj"),
    "around_attention.norm": ("attn_ln", "self_attn_layer_norm"),
    "feed_forward.inner": ("mlp.0", "fc1"),
    "feed_forward.outer": ("mlp.2", "fc2"),
    "around_feed_forward.norm": ("mlp_ln", "final_layer_norm"),
}
_CROSS = {
    "cross.query": ("cross_attn.query", "encoder_attn.q_proj"),
    "cross.key": ("cross_attn.key", "encoder_attn.k_proj"),
    "cross.value": ("cross_attn.value", "encoder_attn.v_proj"),
    "cross.out": ("cross_attn.out", "encoder_attn.out_proj"),
    "around_cross.norm": ("cross_attn_ln", "encoder_attn_layer_norm"),
}
_ENDS = {
    "embedding.weight": ("decoder.token_embedding.weight", "decoder.embed_tokens.weight"),
    "embedding.positions.table": ("decoder.positional_embedding", "decoder.embed_positions.weight"),
    "source_positions.table": ("encoder.positional_embedding", "encoder.embed_positions.weight"),
    "front.convolutions.0": ("encoder.conv1", "encoder.conv1"),
    "front.convolutions.1": ("encoder.conv2", "encoder.conv2"),
    "encoder_norm": ("encoder.ln_post", "encoder.layer_norm"),
    "decoder_norm": ("decoder.ln", "decoder.layer_norm"),
}
_DIMS = {
    "mels": "n_mels",
    "vocab": "n_vocab",
    "heard": "n_audio_ctx",
    "width": "n_audio_state",
    "heads": "n_audio_head",
    "encoder": "n_audio_layer",
    "written": "n_text_ctx",
    "decoder": "n_text_layer",
}


def read(folder: Path) -> Loaded:
    """The model in a folder that transformers wrote."""
    tree = read_json(folder / "config.json")
    if tree.get("activation_function", "gelu") != "gelu" or tree.get("scale_embedding"):
        raise ModelError(f"{folder}: only Whisper's own activation (gelu) and plain embeddings are supported")
    sizes = {
        "mels": tree.get("num_mel_bins", 80),
        "vocab": tree.get("vocab_size"),
        "heard": tree.get("max_source_positions", 1500),
        "width": tree.get("d_model"),
        "heads": tree.get("encoder_attention_heads"),
        "encoder": tree.get("encoder_layers"),
        "written": tree.get("max_target_positions", 448),
        "decoder": tree.get("decoder_layers"),
        "d_ff": tree.get("encoder_ffn_dim"),
    }
    config = _config(sizes, folder / "config.json")
    tensors = {name.removeprefix("model."): tensor for name, tensor in read_tensors(folder).items()}
    tensors.pop("proj_out.weight", None)  # the embeddings again
    return _loaded(config, tensors, folder, 1, _folder_text(folder, config.model.vocab_size))


def read_file(path: Path) -> Loaded:
    """The model of an OpenAI .pt file."""
    try:
        refuse_packed(path)
        found: Any = torch.load(path, map_location="cpu", weights_only=True)
    except ModelError:
        raise
    except pickle.UnpicklingError as error:
        raise ModelError(f"{path} holds more than weights and was not opened: it could run code") from error
    except Exception as error:  # a stranger's bytes may fail anywhere in torch
        raise ModelError(f"{path} cannot be read ({type(error).__name__}); copy it again") from error
    dims = found.get("dims") if isinstance(found, dict) else None
    tensors = found.get("model_state_dict") if isinstance(found, dict) else None
    if not isinstance(dims, dict) or not isinstance(tensors, dict):
        raise ModelError(f"{path} does not hold dims and weights as Whisper's files do")
    if not all(isinstance(value, Tensor) for value in tensors.values()):
        raise ModelError(f"{path} does not hold tensors by name")
    refuse_stretched(tensors.values(), path)
    sizes = {name: dims.get(theirs) for name, theirs in _DIMS.items()}
    config = _config(sizes, path)
    named = {str(name): tensor for name, tensor in tensors.items()}
    return _loaded(config, named, path, 0, _file_text(path, config.model.vocab_size))


def _config(sizes: Mapping[str, Any], where: Path) -> Config:
    width = sizes["width"]
    if sizes["heard"] != 1500:
        raise ModelError(f"{where}: an encoder of {shown(sizes['heard'])} places; Whisper's has 1500")
    settings = {
        "task": "speech",
        "model.kind": "speech",
        "model.d_model": width,
        "model.n_heads": sizes["heads"],
        "model.encoder_layers": sizes["encoder"],
        "model.decoder_layers": sizes["decoder"],
        "model.d_ff": sizes.get("d_ff") or (4 * width if isinstance(width, int) else None),
        "model.vocab_size": sizes["vocab"],
        "model.activation": "gelu",
        "model.scale_embedding": False,
        "model.dropout": 0.0,
        "positions.kind": "learned",
        "positions.max_length": sizes["written"],
        "decode.beam": 1,
        "speech.rate": 16000,
        "speech.mels": sizes["mels"],
        "speech.fft": 400,
        "speech.features": "whisper",
        "speech.front": "frames",
        "speech.subsampling": 2,
        "speech.ctc": 0.0,
        "speech.heard": 30.0,
        "speech.decoding": "whisper",
    }
    return settle(settings, where, f"{WHAT} model")


def _loaded(
    config: Config, tensors: Mapping[str, Tensor], where: Path, names: int, text: RunningText
) -> Loaded:
    taking = Taking(tensors, where)
    model = taking.model(config, _tensors(taking, config, names), WHAT)
    return Loaded(config, model, text)


def _tensors(taking: Taking, config: Config, names: int) -> Iterator[tuple[str, Tensor]]:
    """Our tensors by name, made of theirs; `names` says whose they are, OpenAI's or Hugging Face's."""
    for ours, theirs in _ENDS.items():
        if ours.endswith((".weight", ".table")):
            yield ours, taking.take(theirs[names])
        else:
            for kind in ("weight", "bias"):
                yield f"{ours}.{kind}", taking.take(f"{theirs[names]}.{kind}")
    stacks = {"encoder": config.model.encoder_layers, "decoder": config.model.decoder_layers}
    for stack, layers in stacks.items():
        parts = _LAYER if stack == "encoder" else _LAYER | _CROSS
        for number in range(layers):
            there = f"{stack}.{('blocks', 'layers')[names]}.{number}"
            yield from _layer(taking, f"{stack}.{number}", there, parts, names)


def _layer(
    taking: Taking, here: str, there: str, parts: Mapping[str, tuple[str, str]], names: int
) -> Iterator[tuple[str, Tensor]]:
    for ours, theirs in parts.items():
        if ours.endswith(".key"):
            continue
        for kind in ("weight", "bias"):
            tensor = taking.take(f"{there}.{theirs[names]}.{kind}")
            if ours.endswith(".value"):
                whose = ours.removesuffix(".value")
                key = parts[f"{whose}.key"][names]
                other = taking.take(f"{there}.{key}.weight") if kind == "weight" else torch.zeros_like(tensor)
                yield f"{here}.{whose}.key_value.{kind}", torch.cat([other, tensor])
            else:
                yield f"{here}.{ours}.{kind}", tensor


# The vocabulary ------------------------------------------------------------------------------------


def _folder_text(folder: Path, size: int) -> RunningText:
    """tokenizer.json, or vocab.json and merges.txt; what steers follows from the number of tokens."""
    path = folder / "tokenizer.json"
    if path.exists():
        model = read_json(path, most=MOST_JSON).get("model")
        ids, merges = (model.get("vocab"), model.get("merges")) if isinstance(model, dict) else (None, None)
    else:
        path = folder / "vocab.json"
        ids, merges = read_json(path, most=MOST_JSON), byte_level.read_merges(folder / "merges.txt")
    if not isinstance(ids, dict) or not isinstance(merges, list):
        raise ModelError(f"{path} must hold tokens with their ids, and merges")
    spoken = {
        piece: number
        for piece, number in ids.items()
        if not piece.startswith("<|") or not piece.endswith("|>")
    }
    plain = byte_level.build(spoken | {END: len(spoken)}, merges, {}, [], {"eos_token_id": len(spoken)}, path)
    return whisper_text(plain.pieces[:-1], plain.merges, size)


def _file_text(path: Path, size: int) -> RunningText:
    """The ranks beside a .pt, or those in the package openai-whisper."""
    name = ASSETS[size == ENGLISH]
    places = [path.parent]
    found = importlib.util.find_spec("whisper")
    places += [Path(place) / "assets" for place in (found.submodule_search_locations or ())] if found else []
    for place in places:
        if (place / name).is_file():
            try:
                text = read_bytes(place / name, MOST_JSON).decode("ascii")
                return whisper_text(*read_ranks(text), size)
            except UnicodeDecodeError:
                raise ModelError(f"{place / name} holds no ranks; copy it again") from None
            except ModelError as error:
                raise ModelError(f"{place / name}: {error}") from None
    raise ModelError(
        f"{path} has no vocabulary in it: put {name} beside it (whisper/assets of openai-whisper), or "
        "pip install --no-deps openai-whisper"
    )
