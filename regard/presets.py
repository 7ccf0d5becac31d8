"""Named shapes: each is nothing but a handful of overrides of the config (`config.py`)."""

from typing import Any

from regard.errors import UsageError

PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {
        "model.d_model": 128,
        "model.d_ff": 512,
        "train.batch_tokens": 2048,
    },
    "small": {},
    "base": {
        "model.d_model": 512,
        "model.n_heads": 8,
        "model.encoder_layers": 6,
        "model.decoder_layers": 6,
        "model.d_ff": 2048,
        "model.norm": "post",
        "positions.kind": "sinusoidal",
    },
    "deep": {  # for speed: narrow, and a decoder of one layer
        "model.d_model": 128,
        "model.encoder_layers": 6,
        "model.decoder_layers": 1,
        "model.d_ff": 512,
        "train.batch_tokens": 2048,
    },
    "document": {  # long text in, short text out
        "model.d_model": 128,
        "model.encoder_layers": 2,
        "model.decoder_layers": 2,
        "model.d_ff": 512,
        "attention.kind": "local",
        "attention.window": 128,
        "positions.kind": "rotary",
        "data.max_length": 16384,
        "data.max_ratio": 16384.0,
        "train.batch_tokens": 16384,
        "decode.length_penalty": 1.0,
        "decode.max_ratio": 0.0,
        "decode.max_extra": 96,
        "decode.max_source": 16384,
    },
}


def preset(name: str) -> dict[str, Any]:
    """The overrides of a preset."""
    if name not in PRESETS:
        raise UsageError(f"unknown preset {name}; there are {', '.join(PRESETS)}")
    return PRESETS[name]
