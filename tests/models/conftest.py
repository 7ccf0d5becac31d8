"""A small model and the folder that holds it."""

from pathlib import Path

import pytest
from torch import nn

from regard.config import Config, merge
from regard.models import build, folder
from regard.text.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.train(["the cat sees a dog"] * 9, 0)


@pytest.fixture(scope="module")
def config(tokenizer: Tokenizer) -> Config:
    overrides = {
        "model.d_model": 22,
        "model.n_heads": 2,
        "model.d_ff": 13,
        "model.encoder_layers": 1,
        "model.decoder_layers": 1,
        "model.vocab_size": tokenizer.vocab_size,
        "positions.kind": "learned",
        "positions.max_length": 19,
        "decode.beam": 3,
    }
    return merge(Config(), overrides)


@pytest.fixture(scope="module")
def model(config: Config) -> nn.Module:
    return build(config)


@pytest.fixture
def saved(tmp_path: Path, config: Config, model: nn.Module, tokenizer: Tokenizer) -> Path:
    path = tmp_path / "model"
    folder.save(path, config=config, model=model, tokenizer=tokenizer, card="# Card ▁\n")
    return path
