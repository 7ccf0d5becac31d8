"""Tiny language models to look at, export and refuse: drawn, not trained, and far from even."""

from pathlib import Path
from typing import Any

import torch

from regard.config import Config, merge
from regard.models.both import Both
from regard.models.decoder import Decoder
from regard.models.folder import save
from regard.text.running import RunningText

TEXT = "the cat sat on the mat, the dog sat — naïve — on the cat\n" * 9
SHAPE = {
    "task": "language",
    "model.kind": "decoder",
    "model.d_model": 24,
    "model.n_heads": 3,
    "model.d_ff": 17,
    "model.encoder_layers": 0,
    "model.decoder_layers": 2,
    "model.dropout": 0.0,
    "positions.kind": "learned",
    "positions.max_length": 61,
}


def drawn(units: str = "subwords", *, seed: int = 2, **more: Any) -> tuple[Config, Decoder, RunningText]:
    """A model with its tokenizer; `more` are settings, with __ for their dots."""
    torch.manual_seed(seed)
    tokenizer = RunningText.learn([TEXT], units)
    asked = {key.replace("__", "."): value for key, value in more.items()}
    config = merge(Config(), SHAPE | {"model.vocab_size": tokenizer.vocab_size} | asked)
    model = (Both if config.task == "both" else Decoder)(config).eval()
    with torch.no_grad():
        model.embedding.weight.mul_(4)  # so that it prefers something
        for name, weight in model.named_parameters():
            if weight.dim() == 1:  # gains and biases begin even, and would hide a swap
                weight.add_(torch.randn_like(weight) * (0.1 if "norm" in name else 0.02))
    return config, model, tokenizer


def write_writer(place: Path, units: str = "subwords", **more: Any) -> Path:
    """The same as a model folder."""
    config, model, tokenizer = drawn(units, **more)
    save(place, config=config, model=model, tokenizer=tokenizer, card="# A language model\n")
    return place
