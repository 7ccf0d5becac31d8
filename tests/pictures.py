"""Small pictures with labels, and a model folder with random weights, for what is tested around them."""

from pathlib import Path

import numpy as np
import torch
from PIL import Image

from regard.config import Config, merge
from regard.images.picture import Fit
from regard.images.preprocessing import PREPROCESSING, Preprocessing
from regard.models import build
from regard.models.folder import save

TINY = {
    "model.d_model": 12,
    "model.n_heads": 2,
    "model.d_ff": 20,
    "model.encoder_layers": 2,
    "model.dropout": 0.1,
    "image.height": 8,
    "image.width": 12,
    "image.channels": 1,
    "image.patch": 4,
    "image.classes": 3,
    "image.blocks": 0,
}
NAMES = ["bars", "dots", "field"]


def sample(kind: int, random: np.random.Generator) -> np.ndarray:
    """A picture (8, 12) of one of three kinds that a small model can tell."""
    noise = random.integers(0, 60, (8, 12))
    if kind == 0:
        noise[:, ::4] += 150
    elif kind == 1:
        noise[random.integers(8), :] += 150
    return noise.astype(np.uint8)


def write_pictures(folder: Path, count: int = 60, seed: int = 1) -> Path:
    """A folder a class."""
    random = np.random.default_rng(seed)
    for number in range(count):
        kind = number % 3
        (folder / NAMES[kind]).mkdir(parents=True, exist_ok=True)
        Image.fromarray(sample(kind, random)).save(folder / NAMES[kind] / f"{number}.png")
    return folder


def config_of(more: dict[str, object] | None = None) -> Config:
    task: dict[str, object] = {"task": "image", "model.kind": "encoder", "model.decoder_layers": 0}
    return merge(Config(), task | {"positions.kind": "learned"} | TINY | (more or {}))


def write_classifier(folder: Path, more: dict[str, object] | None = None) -> Path:
    """A model folder with random weights."""
    torch.manual_seed(7)
    config = config_of(more)
    made = Preprocessing(Fit(8, 12, 1), (0.3,), (0.2,))
    files = {"labels.json": b'["bars", "dots", "field"]', PREPROCESSING: made.to_json()}
    save(folder, config=config, model=build(config), card="# A card\n", files=files)
    return folder


def write_detector(folder: Path) -> Path:
    """A detector with random weights."""
    shape = {"task": "detection", "model.d_model": 12, "model.n_heads": 2, "model.d_ff": 20}
    shape |= {"model.encoder_layers": 1, "model.decoder_layers": 1, "model.dropout": 0.0}
    sizes = {"height": 16, "width": 24, "channels": 1, "stride": 8, "classes": 2, "queries": 5, "blocks": 0}
    torch.manual_seed(5)
    config = merge(Config(), shape | {f"detection.{key}": value for key, value in sizes.items()})
    made = Preprocessing(Fit(16, 24, 1, "stretch"), (0.5,), (0.3,))
    files = {"labels.json": b'["a", "b"]', PREPROCESSING: made.to_json()}
    save(folder, config=config, model=build(config), card="# A card\n", files=files)
    return folder
