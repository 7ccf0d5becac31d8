"""config.json of a model folder, read in this one place: its settings, verified, and the sums of its files.

Needs no torch: the server reads it before the models are loaded, and a verb that was given the folder of
another task says so at once. Written by `regard.models.folder`.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from regard.config.tree import Config, from_dict
from regard.errors import ModelError, RegardError, shown
from regard.foreign import read_json

CONFIG = "config.json"


def read_config(folder: Path) -> Config:
    """The settings of a model folder; its weights are verified when they are loaded."""
    return config_of(folder, read_tree(folder)[0])


def refuse_exports(folder: Path) -> None:
    """Refuse what `regard export` wrote for other programs, saying what it is."""
    if (folder / "model.bin").exists() and list(folder.glob("*_vocabulary.*")):
        raise ModelError(
            f"{folder} is a model of CTranslate2; translate with it by --engine ctranslate2, "
            "or give the folder that it was exported from"
        )
    if (folder / "encoder.onnx").exists():
        raise ModelError(f"{folder} is an export to ONNX; give the folder that it was exported from")


def config_of(folder: Path, tree: dict[str, Any]) -> Config:
    """The tree of a folder as a config."""
    try:
        return from_dict(tree)
    except (RegardError, TypeError) as error:
        raise ModelError(f"{folder / CONFIG}: {error}; it was made by another version of Regard") from error


def read_tree(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The settings as they lie in the folder, proved whole, and the checksums of the other files."""
    if not folder.exists():
        raise ModelError(f"{folder} does not exist; give the folder that regard train made")
    if not folder.is_dir():
        raise ModelError(f"{folder} is a file; give the folder that regard train made")
    path = folder / CONFIG
    refuse_exports(folder)
    if not path.is_file():
        raise ModelError(f"{folder} has no {CONFIG}; it is no model folder, or not all of it was copied")
    tree = read_json(path, "settings")
    checksums = tree.pop("checksums", None)
    if not isinstance(checksums, dict):
        if "model_type" in tree:
            raise ModelError(
                f"{folder} is a model of Hugging Face; take it over: regard import {folder} -o DIR"
            )
        raise ModelError(f"{path} has no checksums; it is not of a folder that regard train made")
    if checksums.get(CONFIG) != tree_checksum(tree):
        raise ModelError(
            f"{path} is damaged or was edited: its checksum is {tree_checksum(tree)[:12]}, not "
            f"{shown(checksums.get(CONFIG))[:12]}; copy it again (decoding is set in generation.json)"
        )
    return tree, checksums


def is_model(folder: Path) -> bool:
    """Whether a folder holds a config of ours, whole or not."""
    try:
        return "checksums" in read_json(folder / CONFIG, "settings")
    except ModelError:
        return False


def tree_checksum(tree: dict[str, Any]) -> str:
    """SHA-256 of a config tree, whatever its layout on disk."""
    return hashlib.sha256(json.dumps(tree, sort_keys=True).encode()).hexdigest()
