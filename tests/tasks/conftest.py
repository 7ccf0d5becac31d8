"""A small encoder with random weights as a model folder, for what is tested around it."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
import torch

from regard.config import Config, merge
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


def write_encoder(folder: Path, task: str, more: Mapping[str, object] | None = None) -> Path:
    """A folder of that task."""
    torch.manual_seed(3)
    config = merge(Config(), ENCODER | {"task": task} | dict(more or {}))
    tokenizer = WordPieces(PIECES, Marks(0, 1, 2, 3, 4))
    save(folder, config=config, model=build(config), tokenizer=tokenizer, card="# An encoder\n")
    return folder


@pytest.fixture(scope="session")
def sentence_encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that gives vectors."""
    return write_encoder(tmp_path_factory.mktemp("embed"), "embed")


@pytest.fixture(scope="session")
def gap_filler(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that fills gaps."""
    return write_encoder(tmp_path_factory.mktemp("masked"), "masked")


@pytest.fixture(scope="session")
def an_encoder() -> Callable[..., Path]:
    """`an_encoder(folder, task, settings)`: one of any task."""
    return write_encoder
