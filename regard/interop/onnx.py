"""ONNX: the encoder and one step of the decoder with its cache, as two graphs for onnxruntime and the like.

    encoder.onnx   src (B, S), src_mask (B, S) -> memory_k_i, memory_v_i (B, H, S, K) for each decoder layer
    decoder.onnx   ids (B,), src_mask (B, S), memory_*, past_k_i, past_v_i (B, H, T, K)
                   -> logits (B, V), next_k_i, next_v_i (B, H, T + 1, K)

The first step has a past of T = 0. The layers here say what `regard.layers` says without its branches,
which a graph cannot hold. `Session` runs the two as a model of ours, so that every search works on them.
"""

import dataclasses
import json
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from regard.attention.heads import MultiHead
from regard.attention.positions import sinusoids
from regard.config import Config
from regard.data.inputs import Tokens
from regard.interop.parts import longest, need, plain, position_table, query_scale
from regard.layers import DecoderLayer, EncoderLayer, Residual
from regard.models.folder import GENERATION, TOKENIZER, Loaded
from regard.models.transformer import Transformer

NAME = "onnx"
Pairs = list[tuple[Tensor, Tensor]]


def write(loaded: Loaded, out: Path) -> None:
    """encoder.onnx, decoder.onnx, and what turns text into ids and back."""
    need(NAME)
    allowed = {
        "attention.score": ("scaled-dot", "dot"),
        "positions.kind": ("sinusoidal", "learned", "none", "rotary"),
    }
    model = plain(loaded.model, loaded.config, "ONNX", allowed).eval()
    with _quiet():
        _export_encoder(Encoder(model, loaded.config), out / "encoder.onnx")
        _export_decoder(Decoder(model, loaded.config), out / "decoder.onnx")
    (out / TOKENIZER).write_text(loaded.tokenizer.to_json(), encoding="utf-8")
    settings = dataclasses.asdict(loaded.config.decode)
    (out / GENERATION).write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")


@contextmanager
def _quiet() -> Iterator[None]:
    """The exporter speaks of its own progress."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)


# The graphs --------------------------------------------------------------------------------------


def _width(heads: MultiHead) -> int:
    return heads.query.out_features // heads.n_heads


def _split(x: Tensor, heads: int) -> Tensor:
    return x.reshape(x.shape[0], x.shape[1], heads, x.shape[2] // heads).transpose(1, 2)  # (B, H, T, K)


def _turned(x: Tensor, angles: Tensor | None) -> Tensor:
    """x (B, H, T, K) turned by the sines and cosines (T, K) of its places: rotary positions."""
    if angles is None:
        return x
    sin, cos = angles.chunk(2, -1)
    left, right = x.chunk(2, -1)
    return torch.cat([left * cos - right * sin, right * cos + left * sin], -1)


def _keys_values(heads: MultiHead, x: Tensor, angles: Tensor | None = None) -> tuple[Tensor, Tensor]:
    k, v = heads.key_value(x).chunk(2, -1)
    return _turned(_split(k, heads.n_heads), angles), _split(v, heads.n_heads)


def _attend(
    heads: MultiHead,
    x: Tensor,
    seen: tuple[Tensor, Tensor],
    hidden: Tensor | None,
    angles: Tensor | None = None,
) -> Tensor:
    """x (B, T, D) looks at keys and values (B, H, S, K); `hidden` (B, 1, 1, S) is added to the scores."""
    q, (k, v) = _turned(_split(heads.query(x), heads.n_heads), angles), seen
    scores = q @ k.transpose(2, 3) * query_scale(heads)
    weights = (scores if hidden is None else scores + hidden).softmax(-1)
    out: Tensor = heads.out((weights @ v).transpose(1, 2).flatten(2))
    return out


def _around(residual: Residual, x: Tensor, f: Any) -> Tensor:
    out: Tensor = x + f(residual.norm(x)) if residual.first else residual.norm(x + f(x))
    return out


def _hidden(src_mask: Tensor) -> Tensor:
    """What is added to the scores: a large negative number where there is padding."""
    return ((~src_mask).float() * torch.finfo(torch.float32).min)[:, None, None, :]  # (B, 1, 1, S)


class _Graph(nn.Module):
    """A model with what its places are: vectors that are added to the embeddings, or angles of a rotation."""

    positions: Tensor
    angles: Tensor | None

    def __init__(self, model: Transformer, config: Config) -> None:
        super().__init__()
        self.model = model
        self.register_buffer("positions", position_table(model, config))
        width = _width(self.stack[0].attention)  # type: ignore[arg-type]
        rotary = config.positions.kind == "rotary"
        self.register_buffer("angles", sinusoids(longest(config), width) if rotary else None)

    @property
    def stack(self) -> nn.ModuleList:
        """The layers that it computes."""
        raise NotImplementedError

    def turns(self, start: int, end: int) -> Tensor | None:
        """The angles of these places, if there are any."""
        return None if self.angles is None else self.angles[start:end]


class Encoder(_Graph):
    """Source to the keys and values that the decoder's layers look at."""

    @property
    def stack(self) -> nn.ModuleList:
        return self.model.encoder

    def forward(self, src: Tensor, src_mask: Tensor) -> tuple[Tensor, ...]:
        embedding, hidden = self.model.embedding, _hidden(src_mask)
        x = F.embedding(src, embedding.weight) * embedding.scale + self.positions[: src.shape[1]]
        angles = self.turns(0, src.shape[1])
        for layer in self.model.encoder:
            assert isinstance(layer, EncoderLayer)
            x = self._layer(layer, x, hidden, angles)
        memory = self.model.encoder_norm(x)
        crosses = [layer.cross for layer in self.model.decoder]
        return tuple(part for heads in crosses for part in _keys_values(heads, memory))  # type: ignore[arg-type]

    def _layer(self, layer: EncoderLayer, x: Tensor, hidden: Tensor, angles: Tensor | None) -> Tensor:
        heads = layer.attention

        def look(y: Tensor) -> Tensor:
            return _attend(heads, y, _keys_values(heads, y, angles), hidden, angles)

        x = _around(layer.around_attention, x, look)
        return _around(layer.around_feed_forward, x, layer.feed_forward)


class Decoder(_Graph):
    """The newest ids and the cache to logits and the cache with one place more."""

    @property
    def stack(self) -> nn.ModuleList:
        return self.model.decoder

    def forward(self, ids: Tensor, src_mask: Tensor, memory: Pairs, past: Pairs) -> tuple[Tensor, ...]:
        embedding, hidden = self.model.target_embedding, _hidden(src_mask)
        length = past[0][0].shape[2]
        place = self.positions[length : length + 1]
        x = F.embedding(ids[:, None], embedding.weight) * embedding.scale + place  # (B, 1, D)
        angles = self.turns(length, length + 1)
        grown: list[Tensor] = []
        for layer, seen, own in zip(self.model.decoder, memory, past, strict=True):
            assert isinstance(layer, DecoderLayer)
            x, pair = self._layer(layer, x, (seen, own), (hidden, angles))
            grown += pair
        logits = self.model.project(self.model.decoder_norm(x)[:, 0])
        return logits, *grown

    def _layer(
        self,
        layer: DecoderLayer,
        x: Tensor,
        seen: tuple[tuple[Tensor, Tensor], ...],
        added: tuple[Tensor, Tensor | None],
    ) -> tuple[Tensor, list[Tensor]]:
        (memory, past), (hidden, angles) = seen, added
        pair: list[Tensor] = []

        def look_back(y: Tensor) -> Tensor:
            new = _keys_values(layer.attention, y, angles)
            pair.extend(torch.cat([old, part], 2) for old, part in zip(past, new, strict=True))
            return _attend(layer.attention, y, (pair[0], pair[1]), None, angles)

        x = _around(layer.around_attention, x, look_back)
        cross = layer.cross
        assert cross is not None
        assert layer.around_cross is not None
        x = _around(layer.around_cross, x, lambda y: _attend(cross, y, memory, hidden))
        return _around(layer.around_feed_forward, x, layer.feed_forward), pair


def _numbered(name: str, layers: int) -> list[str]:
    return [f"{name}_{part}_{i}" for i in range(layers) for part in "kv"]


def _export_encoder(module: Encoder, path: Path) -> None:
    src = torch.zeros(3, 5, dtype=torch.int64)
    outputs = _numbered("memory", len(module.model.decoder))
    axes = {"src": {0: "batch", 1: "source"}, "src_mask": {0: "batch", 1: "source"}}
    axes |= {name: {0: "batch", 2: "source"} for name in outputs}
    _export(module, (src, src > -1), path, (["src", "src_mask"], outputs, axes))


def _export_decoder(module: Decoder, path: Path) -> None:
    layers, heads = len(module.model.decoder), module.model.decoder[0].attention
    assert isinstance(heads, MultiHead)
    width = _width(heads)
    pairs = [
        [tuple(torch.rand(3, heads.n_heads, length, width) for _ in "kv") for _ in range(layers)]
        for length in (5, 7)
    ]
    inputs = ["ids", "src_mask", *_numbered("memory", layers), *_numbered("past", layers)]
    outputs = ["logits", *_numbered("next", layers)]
    axes = {"ids": {0: "batch"}, "src_mask": {0: "batch", 1: "source"}, "logits": {0: "batch"}}
    axes |= {name: {0: "batch", 2: "source"} for name in _numbered("memory", layers)}
    axes |= {name: {0: "batch", 2: "past"} for name in _numbered("past", layers)}
    axes |= {name: {0: "batch", 2: "grown"} for name in _numbered("next", layers)}
    example = torch.zeros(3, dtype=torch.int64), torch.ones(3, 5, dtype=torch.bool), *pairs
    _export(module, example, path, (inputs, outputs, axes))


def _export(
    module: nn.Module,
    example: tuple[Any, ...],
    path: Path,
    names: tuple[list[str], list[str], dict[str, Any]],
) -> None:
    """Trace the module; `names` are those of inputs, outputs and of the axes that may have any size."""
    inputs, outputs, axes = names
    torch.onnx.export(
        module.eval(),
        example,
        str(path),
        dynamo=False,  # the tracer is the older exporter; the newer takes 40 times as long for the same graph
        opset_version=17,
        input_names=inputs,
        output_names=outputs,
        dynamic_axes=axes,
    )


# Running -----------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class SessionState:
    """Where a batch of decodings stands, as arrays."""

    src_mask: np.ndarray[Any, Any]
    memory: tuple[np.ndarray[Any, Any], ...]
    past: tuple[np.ndarray[Any, Any], ...]

    def select(self, rows: Tensor) -> "SessionState":
        """The given rows, in that order."""
        at = rows.numpy()
        return SessionState(
            self.src_mask[at], tuple(part[at] for part in self.memory), tuple(part[at] for part in self.past)
        )


class Session:
    """The two graphs as a model that follows the step protocol."""

    max_length: int | None = None
    training = False

    def __init__(self, folder: Path) -> None:
        runtime = need("onnxruntime")
        options = runtime.SessionOptions()
        options.intra_op_num_threads = torch.get_num_threads()
        paths = [str(folder / f"{name}.onnx") for name in ("encoder", "decoder")]
        self.encoder, self.decoder = (runtime.InferenceSession(path, options) for path in paths)
        self.names = [entry.name for entry in self.decoder.get_inputs()]

    def start(self, inputs: Tokens) -> SessionState:
        """Run the encoder once."""
        mask = inputs.real.numpy()
        memory = self.encoder.run(None, {"src": inputs.ids.numpy(), "src_mask": mask})
        empty = tuple(part[:, :, :0] for part in memory)
        return SessionState(mask, tuple(memory), empty)

    def step(self, ids: Tensor, state: SessionState) -> tuple[Tensor, SessionState]:
        """Read the newest ids (B,) and give the logits (B, V) of what comes next."""
        values = (ids.numpy(), state.src_mask, *state.memory, *state.past)
        logits, *past = self.decoder.run(None, dict(zip(self.names, values, strict=True)))
        return torch.from_numpy(logits), SessionState(state.src_mask, state.memory, tuple(past))
