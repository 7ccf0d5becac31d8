"""A recogniser of a few weights, random: what it says is nonsense, and every path of it runs."""

from pathlib import Path

import torch

from regard.config import Config, merge
from regard.models import build
from regard.models.folder import Loaded, save
from regard.tasks.speech import TASK
from regard.tasks.speech.listener import Listener
from regard.text.running import RunningText

SMALL = {
    "model.d_model": 16,
    "model.n_heads": 2,
    "model.d_ff": 24,
    "model.encoder_layers": 2,
    "model.decoder_layers": 2,
    "model.dropout": 0.0,
    "attention.window": 5,
    "attention.ahead": 2,
    "speech.rate": 8000,
    "speech.mels": 13,
    "speech.channels": 3,
    "speech.subsampling": 4,
    "speech.heard": 2.0,
}


def random_listener(**changes: object) -> Listener:
    tokenizer = RunningText.learn(["1 2"], "characters")
    settings = TASK.defaults() | SMALL | {"model.vocab_size": tokenizer.vocab_size} | changes
    torch.manual_seed(7)
    config = merge(Config(), settings)
    return Listener(Loaded(config, build(config).eval(), tokenizer))


def write_listener(place: Path, **changes: object) -> Path:
    """The folder of one that hears something everywhere."""
    made = random_listener(**changes)
    if made.model.ctc is not None:
        with torch.no_grad():
            made.model.ctc.bias[0] = -9.0
    save(place, config=made.config, model=made.model, tokenizer=made.tokenizer, card="# Random\n")
    return place
