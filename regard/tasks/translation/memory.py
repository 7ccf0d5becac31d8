"""How much memory a run will take, from the shapes alone, before it starts.

    peak = what is held now + gradients + optimiser + average + what the largest batch makes

A Transformer's layer holds for its backward pass about ten vectors a token and the feed-forward's inside,
fewer where `regard.fused` computes it, which holds no masks and no weights of short sequences either;
one that is computed again (`layers/encoder.py`) its input twice, and the rest only while it is at work.
Said by `run.py` before the rehearsal of `forecast.py`.
"""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from regard.attention.attend import SHORT
from regard.config import Config
from regard.fused.library import available as fused
from regard.layers.encoder import LONG
from regard.layers.encoder import SLICE as PLACES
from regard.layers.feed_forward import GATES
from regard.process.inventory import total_memory
from regard.training.loss import SLICE as LOGITS

Ints = npt.NDArray[np.int64]
FLOAT = 4  # bytes; bf16 would take fewer


@dataclass(frozen=True)
class Shape:
    """The sizes of a Transformer that its memory depends on."""

    width: int
    inner: int
    heads: int
    encoder: int
    decoder: int
    recompute: str

    @classmethod
    def of(cls, config: Config) -> "Shape":
        shape = config.model
        return cls(
            width=shape.d_model,
            inner=shape.d_ff * (1 + (shape.activation in GATES)),
            heads=shape.n_heads,
            encoder=shape.encoder_layers,
            decoder=shape.decoder_layers,
            recompute=config.train.recompute,
        )


@dataclass(frozen=True)
class Memory:
    """Bytes that a run takes: at rest, and at most while it is at work."""

    now: int
    training: int  # gradients, optimiser, average
    batch: int  # the largest one
    tokens: int  # source tokens in it

    @property
    def peak(self) -> int:
        return self.now + self.training + self.batch

    def line(self) -> str:
        """In words, with what the machine has."""
        there = total_memory()
        limit = f"; this machine has {_size(there)}" if there else ""
        advice = ""
        if there and self.peak > there:
            advice = ": too much; lower train.batch_tokens or data.max_length, or set train.recompute=always"
        return (
            f"memory: about {_size(self.peak)} at most, {_size(self.batch)} of it for the largest batch "
            f"({self.tokens:,} source tokens){limit}{advice}"
        )


def memory_of(trainer: Any, config: Config) -> Memory | None:
    """What the run of a `Trainer` on pairs takes; None for models whose layers this file does not know."""
    if config.model.kind != "transformer" or trainer.device.type != "cpu":
        return None
    weights = sum(weight.numel() for weight in trainer.weights)
    slots = sum(
        (2 if "betas" in group else 1) * weight.numel()  # Adam holds two numbers a weight, Muon one
        for optimizer in trainer.optimizers
        for group in optimizer.param_groups
        for weight in group["params"]
    )
    average = 0 if trainer.config.average == "none" else weights
    output = 2 * trainer.model.output_weight.numel()  # its gradient, and that of its loss
    rows, src, tgt = trainer.feed.shapes()
    shape = Shape.of(config)
    costs = batch_numbers(shape, rows, src, tgt) * FLOAT
    largest = int(costs.argmax())
    batch = int(costs[largest]) + FLOAT * (output + 3 * LOGITS)
    return Memory(
        resident_memory(), FLOAT * (weights + slots + average), batch, int(rows[largest] * src[largest])
    )


def batch_numbers(shape: Shape, rows: Ints, src: Ints, tgt: Ints) -> Ints:
    """How many numbers batches of `rows` pairs, padded to `src` and `tgt` tokens, make: (N,)."""
    d, f = shape.width, shape.inner
    reading, writing = (8, 12) if fused() else (10, 15)  # vectors a token in a layer
    sources, targets = rows * src, rows * tgt
    again = (src >= LONG) if shape.recompute == "auto" else np.full(src.shape, shape.recompute == "always")
    kept = sources * (reading * d + f) + rows * shape.heads * _weights(src, src)
    once = sources * 12 * d  # one layer that is computed again, forward and backward
    encoder = np.where(again, shape.encoder * 2 * sources * d + once, shape.encoder * kept)
    decoder = targets * (writing * d + f) + sources * 2 * d
    decoder += rows * shape.heads * (_weights(tgt, tgt) + _weights(tgt, src))
    backward = np.where(again, np.minimum(sources, rows * PLACES) * 2 * f, sources * (f + 3 * d))
    total: Ints = sources * 3 * d + targets * 3 * d + encoder + shape.decoder * decoder + backward
    return total


def _weights(queries: Ints, keys: Ints) -> Ints:
    """Attention weights that are held a head: the formula as it is written holds those of short sequences."""
    return np.where(queries * keys <= SHORT, 0 if fused() else 2 * queries * keys, queries)


def resident_memory() -> int:
    """Bytes of this process that lie in memory; 0 where that cannot be asked."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


def _size(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e9 else f"{count / 1e6:.0f} MB"
