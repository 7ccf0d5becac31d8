"""Tiny encoders to embed with, fill, label and serve: drawn, not trained."""

import json
from collections.abc import Mapping
from pathlib import Path

import torch

from regard.config import Config, merge
from regard.kinds import TASKS
from regard.models import build
from regard.models.folder import save
from regard.text.wordpiece import Marks, WordPieces

PIECES = [
    "[PAD]",
    "[UNK]",
    "[CLS]",
    "[SEP]",
    "[MASK]",
    "the",
    "cat",
    "##s",
    "sat",
    "on",
    "a",
    "mat",
    ".",
    "dog",
]
ENCODER = {
    "model.kind": "encoder",
    "model.vocab_size": len(PIECES),
    "model.d_model": 22,
    "model.n_heads": 2,
    "model.d_ff": 34,
    "model.encoder_layers": 2,
    "model.decoder_layers": 0,
    "model.dropout": 0.0,
    "model.embedding_norm": True,
    "positions.kind": "learned",
    "positions.max_length": 13,
}
LABELS = ["DET", "NOUN", "née \u2014 <b>"]


def write_encoder(folder: Path, task: str, more: Mapping[str, object] | None = None) -> Path:
    """A folder of that task."""
    torch.manual_seed(3)
    config = merge(Config(), ENCODER | {"task": task} | dict(more or {}))
    tokenizer = WordPieces(PIECES, Marks(0, 1, 2, 3, 4))
    save(folder, config=config, model=build(config), tokenizer=tokenizer, card="# An encoder\n")
    return folder


def write_labeller(folder: Path, task: str) -> Path:
    """One that gives labels."""
    torch.manual_seed(5)
    config = merge(Config(), ENCODER | {"task": task, "labels.count": len(LABELS)})
    tokenizer, model = WordPieces(PIECES, Marks(0, 1, 2, 3, 4)), TASKS[task].build(config)
    files = {"labels.json": json.dumps(LABELS).encode()}
    save(folder, config=config, model=model, tokenizer=tokenizer, files=files, card="# Labels\n")
    return folder
