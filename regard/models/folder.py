"""A model folder: everything that a model needs to be used, and nothing that can run code.

    config.json         the config tree, and the SHA-256 of the files below and of the tree itself
    model.safetensors   the weights; tensors that are tied are stored once
    tokenizer.json      text <-> ids, and whatever else the task needs; the config names them all
    generation.json     decoding defaults, for people to edit, where there is text
    README.md           the card (`card.py`)

All are written beside their places and flushed, then renamed, the config last: a full disk changes
nothing. Before this file: training; after it: the tasks.
"""

import dataclasses
import functools
import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path, PurePath
from typing import Any, NamedTuple

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import nn

from regard.atomic import write_together
from regard.config import Config, merge, to_dict
from regard.config.file import CONFIG, config_of, read_tree, refuse_exports, tree_checksum
from regard.errors import ModelError, RegardError, StorageError, UsageError, shown
from regard.foreign import MOST_JSON, read_bytes, read_json
from regard.models.skeleton import SCALE, compare, fill, header, scaled, skeleton, stored, unscaled
from regard.text.tokenizer import Tokenizer

WEIGHTS, TOKENIZER = "model.safetensors", "tokenizer.json"
GENERATION, CARD = "generation.json", "README.md"

_PICKLES = ("*.bin", "*.pt", "*.pth", "*.pkl", "*.pickle", "*.ckpt")
_PICKLE_STARTS = (b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")


class Loaded(NamedTuple):
    """What a folder holds."""

    config: Config
    model: nn.Module
    text: Tokenizer | None = None
    files: Mapping[str, bytes] = {}  # those of the task, verified

    @property
    def tokenizer(self) -> Tokenizer:
        """Text to ids and back, of a task that has any."""
        if self.text is None:
            raise ModelError(f"the model of task={self.config.task} has no {TOKENIZER}")
        return self.text


_known: "ContextVar[dict[Any, Loaded] | None]" = ContextVar("known", default=None)


def save(
    folder: Path,
    *,
    config: Config,
    model: nn.Module,
    card: str,
    tokenizer: Tokenizer | None = None,
    files: Mapping[str, bytes] | None = None,
    numbers: str = "fp32",
) -> None:
    """Write a model folder, over an older one if there is one; `files` are what its task needs beside it.

    `numbers`: what weights are written as: fp32; fp16, where they fit; int8, matrices with a scale a row.
    """
    own = dict(files or {})
    if tokenizer is not None:
        own[TOKENIZER] = tokenizer.to_json().encode()
    _check_files(folder, config, own, UsageError)
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in stored(model).items()}
    weights = safetensors.torch.save(
        {part: each for name, held in tensors.items() for part, each in _kept(name, held, numbers).items()}
    )
    tree = to_dict(config)
    kept = {WEIGHTS: weights, **own}
    checksums = {name: hashlib.sha256(data).hexdigest() for name, data in kept.items()}
    checksums[CONFIG] = tree_checksum(tree)
    if TOKENIZER in own:
        kept[GENERATION] = _as_json(dataclasses.asdict(config.decode))
    kept[CARD] = card.encode("utf-8", "backslashreplace")  # hours of training hang on it
    _write_all(folder, kept | {CONFIG: _as_json({**tree, "checksums": checksums})})


@contextmanager
def sharing(known: dict[Any, Loaded]) -> Iterator[None]:
    """Inside, a folder that is `known` is not read again: whoever asks for it gets the same model."""
    token = _known.set(known)
    try:
        yield
    finally:
        _known.reset(token)


def load_folder(folder: Path, device: torch.device | str = "cpu") -> Loaded:
    """Read and verify a model folder; ModelError says in one line what is wrong with it."""
    known = _known.get()
    if known is None:
        return _load(folder, device)
    key = folder.resolve(), str(device)
    if key not in known:
        known[key] = _load(folder, device)
    return known[key]


def _load(folder: Path, device: torch.device | str) -> Loaded:
    _refuse_pickles(folder)
    tree, checksums = read_tree(folder)
    config = config_of(folder, tree)
    names = [name for name in checksums if name not in (CONFIG, WEIGHTS)]
    for name in (WEIGHTS, *names, *([GENERATION] if TOKENIZER in names else [])):
        if PurePath(name).name != name or not (folder / name).is_file():
            raise ModelError(
                f"{folder} has no {shown(name)} (asked for by {CONFIG}); it is no model folder, "
                "or not all of it was copied"
            )
    if TOKENIZER in names:
        config = _read_generation(folder, config)
    files = {name: read_bytes(folder / name, MOST_JSON) for name in names}
    for name, data in files.items():
        _verify(folder / name, data, checksums)
    text = _check_files(folder, config, files, ModelError)
    model = _model(config, _read_weights(folder / WEIGHTS, checksums), folder / WEIGHTS)
    return Loaded(config, model.to(device).eval(), text, files)


def _check_files(
    folder: Path, config: Config, files: Mapping[str, bytes], kind: type[RegardError]
) -> Tokenizer | None:
    """The tokenizer among the files, if there is one; the model must have room for its tokens."""
    if TOKENIZER not in files:
        return None
    try:
        tokenizer = Tokenizer.from_json(files[TOKENIZER].decode())
    except (ModelError, UnicodeDecodeError) as error:
        raise ModelError(f"{folder / TOKENIZER}: {error}") from error
    room, needed = _sizes(config, tokenizer)
    if room < needed:
        if kind is UsageError:
            raise UsageError(f"model.vocab_size ({room}) must be at least the tokenizer's ({needed})")
        raise ModelError(
            f"{folder}: {TOKENIZER} holds {needed} tokens, the model has room for {room}; "
            "they are not of the same model, copy the folder again"
        )
    return tokenizer


def _sizes(config: Config, tokenizer: Tokenizer) -> tuple[int, int]:
    """The rows of an embedding and the ids it has to hold; of the target's if it has too few."""
    shape = config.model
    source = shape.vocab_size, tokenizer.vocab_size
    target = shape.target_vocab_size or shape.vocab_size, tokenizer.target_vocab_size
    return target if target[0] < target[1] else source


# Reading ---------------------------------------------------------------------------------------


def _refuse_pickles(folder: Path) -> None:
    """Refuse a folder with other weights than ours, saying what is there."""
    pickles = (
        sorted(path.name for pattern in _PICKLES for path in folder.glob(pattern)) if folder.is_dir() else []
    )
    refuse_exports(folder)
    if pickles and not (folder / WEIGHTS).exists():
        raise ModelError(
            f"{folder} has no {WEIGHTS} but {pickles[0]}, a pickle, which can run code and is never opened; "
            "give a folder that regard train made"
        )


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ModelError(f"cannot read {path}: {error.strerror}") from error


def _read_generation(folder: Path, config: Config) -> Config:
    """The config with the folder's decoding defaults laid over it."""
    path = folder / GENERATION
    try:
        return merge(config, {f"decode.{key}": value for key, value in read_json(path, "settings").items()})
    except UsageError as error:
        raise ModelError(f"{path}: {error}") from error


def _read_weights(path: Path, checksums: dict[str, Any]) -> bytes:
    """A safetensors file, once it has proved to be the one that was saved."""
    data = _read(path)
    if data.startswith(_PICKLE_STARTS):
        raise ModelError(f"{path} is a pickle, which can run code and is never opened; copy the folder again")
    _verify(path, data, checksums)
    return data


def _model(config: Config, data: bytes, path: Path) -> nn.Module:
    """The model of a safetensors file; nothing is built before it has proved to be the config's."""
    try:
        have = header(data)
        model = skeleton(config, len(have), path)
        compare(stored(model), scaled(have), path)
        fill(model, unscaled(safetensors.torch.load(data)))
    except ModelError:
        raise
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise ModelError(
            f"{path} is no safetensors file ({shown(str(error))}); copy the folder again"
        ) from error
    return model


def _verify(path: Path, data: bytes, checksums: dict[str, Any]) -> None:
    have, want = hashlib.sha256(data).hexdigest(), checksums.get(path.name)
    if have != want:
        raise ModelError(
            f"{path} is damaged ({len(data)} bytes): its checksum is {have[:12]}, {CONFIG} says "
            f"{shown(want)[:12]}; copy the folder again, or train on from its checkpoints"
        )


# Writing ---------------------------------------------------------------------------------------


def _as_json(tree: dict[str, Any]) -> bytes:
    return (json.dumps(tree, indent=2) + "\n").encode()


def _kept(name: str, tensor: torch.Tensor, numbers: str) -> dict[str, torch.Tensor]:
    """A tensor as it is written: in fewer bytes if that is wished and its numbers fit."""
    if numbers == "fp32" or tensor.dtype != torch.float32:
        return {name: tensor}
    if numbers == "int8" and tensor.dim() > 1 and bool(tensor.isfinite().all()):
        scale = tensor.flatten(1).abs().amax(1).clamp(min=1e-30) / 127
        rows = tensor / scale.view(-1, *[1] * (tensor.dim() - 1))
        return {name: rows.round().to(torch.int8), name + SCALE: scale}
    small = tensor.half()
    return {name: small if bool(small.isfinite().all()) else tensor}


def _write_all(folder: Path, files: dict[str, bytes]) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"cannot make {folder}: {error.strerror or error}") from error
    write_together(folder, {name: functools.partial(_put, data) for name, data in files.items()})


def _put(data: bytes, path: Path) -> None:
    path.write_bytes(data)
