"""What a setting must keep, said in one line where it does not: the rule and both numbers.

Used by every table of this room.
"""

import difflib
from collections.abc import Iterable

from regard.errors import UsageError, shown


def rule(holds: bool, message: str) -> None:
    """Refuse what does not hold."""
    if not holds:
        raise UsageError(message)


def one_of(name: str, value: str, allowed: Iterable[str]) -> None:
    """Refuse a word that is none of these."""
    if value not in allowed:
        raise UsageError(f"{name} ({shown(value)}) must be one of {', '.join(allowed)}")


def between(name: str, value: float, low: float, high: float) -> None:
    """Refuse a number outside these."""
    rule(low <= value <= high, f"{name} ({shown(value)}) must be between {low:g} and {high:g}")


# What other programs call it.
CALLED = {
    "learning_rate": "train.lr",
    "rate": "train.lr",
    "batch_size": "train.batch_tokens",
    "max_tokens": "train.batch_tokens",
    "epochs": "train.max_epochs",
    "max_epoch": "train.max_epochs",
    "steps": "train.max_steps",
    "max_update": "train.max_steps",
    "time": "train.minutes",
    "update_freq": "train.accumulate",
    "gradient_accumulation_steps": "train.accumulate",
    "accum_count": "train.accumulate",
    "clip_norm": "train.clip",
    "max_grad_norm": "train.clip",
    "warmup_steps": "train.warmup",
    "warmup_updates": "train.warmup",
    "lr_scheduler": "train.schedule",
    "optim": "train.optimizer",
    "dtype": "train.precision",
    "fp16": "train.precision",
    "bf16": "train.precision",
    "hidden_size": "model.d_model",
    "embed_dim": "model.d_model",
    "ffn_dim": "model.d_ff",
    "heads": "model.n_heads",
    "num_heads": "model.n_heads",
    "layers": "model.encoder_layers",
    "num_layers": "model.encoder_layers",
    "vocab": "text.vocab_size",
    "beam_size": "decode.beam",
    "num_beams": "decode.beam",
    "max_len": "data.max_length",
    "max_seq_length": "data.max_length",
}


def nearest(key: str, known: Iterable[str]) -> str:
    """The key that somebody may have meant: by what others call it, or else by its letters.

    >>> nearest("train.learning_rate", ["train.lr", "train.minutes"])
    'train.lr'
    >>> nearest("train.learnig_rate", ["train.lr", "train.average"])
    'train.lr'
    """
    leaf = key.rpartition(".")[2].lower().replace("-", "_")
    if CALLED.get(leaf) in (known := list(known)):
        return CALLED[leaf]
    same = [each for each in known if each.rpartition(".")[2] == leaf]
    if same:
        return same[0]
    if close := difflib.get_close_matches(key, known, n=1, cutoff=0.85):
        return close[0]
    others = [CALLED[each] for each in difflib.get_close_matches(leaf, CALLED, cutoff=0.85)]
    return next(
        (each for each in others if each in known), difflib.get_close_matches(key, known, n=1, cutoff=0.0)[0]
    )
