"""A model folder: everything a translator needs, and nothing that can run code.

    config.json         the config tree, and the SHA-256 of the files below and of the tree itself
    model.safetensors   the weights; tensors that are tied are stored once
    tokenizer.json      text <-> ids
    generation.json     decoding defaults, for people to edit
    README.md           the card (`card.py`)

All are written beside their places and flushed, then renamed, the config last: a full disk changes
nothing. Before this file: training; after it: `regard.decoding.translator`.
"""

import dataclasses
import functools
import hashlib
import json
from pathlib import Path
from typing import Any, NamedTuple

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from regard.atomic import write_together
from regard.config import Config, from_dict, merge, to_dict
from regard.errors import ModelError, RegardError, StorageError, UsageError
from regard.models import build
from regard.text.tokenizer import Tokenizer

CONFIG, WEIGHTS, TOKENIZER = "config.json", "model.safetensors", "tokenizer.json"
GENERATION, CARD = "generation.json", "README.md"

_PICKLES = ("*.bin", "*.pt", "*.pth", "*.pkl", "*.pickle", "*.ckpt")
_PICKLE_STARTS = (b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")


class Loaded(NamedTuple):
    """What a folder holds."""

    config: Config
    model: nn.Module
    tokenizer: Tokenizer


def save(folder: Path, *, config: Config, model: nn.Module, tokenizer: Tokenizer, card: str) -> None:
    """Write a model folder, over an older one if there is one."""
    room, needed = _sizes(config, tokenizer)
    if room < needed:
        raise UsageError(f"model.vocab_size ({room}) must be at least the tokenizer's ({needed})")
    weights = safetensors.torch.save(_stored(model))
    pieces = tokenizer.to_json().encode()
    tree = to_dict(config)
    checksums = {
        WEIGHTS: hashlib.sha256(weights).hexdigest(),
        TOKENIZER: hashlib.sha256(pieces).hexdigest(),
        CONFIG: _tree_checksum(tree),
    }
    _write_all(
        folder,
        {
            WEIGHTS: weights,
            TOKENIZER: pieces,
            GENERATION: _as_json(dataclasses.asdict(config.decode)),
            CARD: card.encode(),
            CONFIG: _as_json({**tree, "checksums": checksums}),
        },
    )


def load(folder: Path, device: torch.device | str = "cpu") -> Loaded:
    """Read and verify a model folder; ModelError says in one line what is wrong with it."""
    _check_folder(folder)
    config, checksums = _read_config(folder)
    config = _read_generation(folder, config)
    pieces = _read(folder / TOKENIZER)
    _verify(folder / TOKENIZER, pieces, checksums)
    try:
        tokenizer = Tokenizer.from_json(pieces.decode())
    except (ModelError, UnicodeDecodeError) as error:
        raise ModelError(f"{folder / TOKENIZER}: {error}") from error
    room, needed = _sizes(config, tokenizer)
    if room < needed:
        raise ModelError(
            f"{folder}: {TOKENIZER} holds {needed} tokens, the model has room for {room}; "
            "they are not of the same model, copy the folder again"
        )
    tensors = _read_weights(folder / WEIGHTS, checksums)
    with torch.random.fork_rng(devices=[]):  # first weights are random; the caller's randomness is not ours
        model = build(config)
    _fill(model, tensors, folder / WEIGHTS)
    return Loaded(config, model.to(device).eval(), tokenizer)


def _sizes(config: Config, tokenizer: Tokenizer) -> tuple[int, int]:
    """The rows of an embedding and the ids it has to hold; of the target's if it has too few."""
    shape = config.model
    source = shape.vocab_size, tokenizer.vocab_size
    target = shape.target_vocab_size or shape.vocab_size, tokenizer.target_vocab_size
    return target if target[0] < target[1] else source


def _stored(model: nn.Module) -> dict[str, Tensor]:
    """The tensors of a model by name; of those that are one and the same, the first name."""
    tensors: dict[str, Tensor] = {}
    seen: set[tuple[Any, ...]] = set()
    for name, tensor in model.state_dict().items():
        place = (tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype)
        if tensor.numel() and place in seen:
            continue
        seen.add(place)
        tensors[name] = tensor.detach().cpu().contiguous()
    return tensors


def _fill(model: nn.Module, tensors: dict[str, Tensor], path: Path) -> None:
    """Copy the tensors into the model they belong to, if they are exactly those it has."""
    everything, names = model.state_dict(), _stored(model).keys()
    places = {name: everything[name] for name in names}
    for name in sorted(places.keys() | tensors.keys()):
        if name not in tensors:
            raise ModelError(f"{path} lacks the tensor {name} that {CONFIG} asks for; copy the folder again")
        if name not in places:
            raise ModelError(f"{path} holds a tensor {name} unknown to {CONFIG}; copy the folder again")
        have, want = tensors[name], places[name]
        if have.shape != want.shape or have.dtype != want.dtype:
            raise ModelError(
                f"{path}: tensor {name} is {_shape(have)}, {CONFIG} asks for {_shape(want)}; "
                "the two are not of the same model, copy the folder again"
            )
    with torch.no_grad():
        for name, place in places.items():
            place.copy_(tensors[name])


def _shape(tensor: Tensor) -> str:
    return f"{tuple(tensor.shape)} {str(tensor.dtype).removeprefix('torch.')}"


# Reading ---------------------------------------------------------------------------------------


def _check_folder(folder: Path) -> None:
    """Refuse what cannot be a model folder, saying what is there instead."""
    if not folder.exists():
        raise ModelError(f"{folder} does not exist; give the folder that regard train made")
    if not folder.is_dir():
        raise ModelError(f"{folder} is a file; give the folder that regard train made")
    pickles = sorted(path.name for pattern in _PICKLES for path in folder.glob(pattern))
    if pickles and not (folder / WEIGHTS).exists():
        raise ModelError(
            f"{folder} has no {WEIGHTS} but {pickles[0]}, a pickle, which can run code and is never opened; "
            "give a folder that regard train made"
        )
    for name in (CONFIG, WEIGHTS, TOKENIZER, GENERATION):
        if not (folder / name).is_file():
            raise ModelError(f"{folder} has no {name}; it is no model folder, or not all of it was copied")


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror}") from error


def _read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file."""
    try:
        tree = json.loads(_read(path).decode())
    except (ValueError, RecursionError) as error:
        reason = str(error).splitlines()[0]
        raise ModelError(f"{path} is no JSON ({reason}); mend it or copy the folder again") from error
    if not isinstance(tree, dict):
        raise ModelError(f"{path} holds a {type(tree).__name__}, not settings; copy the folder again")
    return tree


def _read_config(folder: Path) -> tuple[Config, dict[str, Any]]:
    """The config, verified, and the checksums of the other files."""
    path = folder / CONFIG
    tree = _read_json(path)
    checksums = tree.pop("checksums", None)
    if not isinstance(checksums, dict):
        raise ModelError(f"{path} has no checksums; it is not of a folder that regard train made")
    if checksums.get(CONFIG) != _tree_checksum(tree):
        raise ModelError(
            f"{path} is damaged or was edited: its checksum is {_tree_checksum(tree)[:12]}, not "
            f"{str(checksums.get(CONFIG))[:12]}; copy it again (decoding is set in {GENERATION})"
        )
    try:
        return from_dict(tree), checksums
    except (RegardError, TypeError) as error:
        raise ModelError(f"{path}: {error}; it was made by another version of Regard") from error


def _read_generation(folder: Path, config: Config) -> Config:
    """The config with the folder's decoding defaults laid over it."""
    path = folder / GENERATION
    try:
        return merge(config, {f"decode.{key}": value for key, value in _read_json(path).items()})
    except UsageError as error:
        raise ModelError(f"{path}: {error}") from error


def _read_weights(path: Path, checksums: dict[str, Any]) -> dict[str, Tensor]:
    """The tensors of a safetensors file, once it has proved to be the one that was saved."""
    data = _read(path)
    if data.startswith(_PICKLE_STARTS):
        raise ModelError(f"{path} is a pickle, which can run code and is never opened; copy the folder again")
    _verify(path, data, checksums)
    try:
        return safetensors.torch.load(data)
    except (SafetensorError, ValueError, KeyError) as error:
        raise ModelError(f"{path} is no safetensors file ({error}); copy the folder again") from error


def _verify(path: Path, data: bytes, checksums: dict[str, Any]) -> None:
    have, want = hashlib.sha256(data).hexdigest(), checksums.get(path.name)
    if have != want:
        raise ModelError(
            f"{path} is damaged ({len(data)} bytes): its checksum is {have[:12]}, {CONFIG} says "
            f"{str(want)[:12]}; copy the folder again, or train on from its checkpoints"
        )


# Writing ---------------------------------------------------------------------------------------


def _as_json(tree: dict[str, Any]) -> bytes:
    return (json.dumps(tree, indent=2) + "\n").encode()


def _tree_checksum(tree: dict[str, Any]) -> str:
    """SHA-256 of a config tree, whatever its layout on disk."""
    return hashlib.sha256(json.dumps(tree, sort_keys=True).encode()).hexdigest()


def _write_all(folder: Path, files: dict[str, bytes]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"cannot make {folder}: {error.strerror or error}") from error
    write_together(folder, {name: functools.partial(_put, data) for name, data in files.items()})


def _put(data: bytes, path: Path) -> None:
    path.write_bytes(data)
