"""Language models for Hugging Face transformers (and so for llama.cpp, which converts from there).

    GPT-2      learned positions, norms that are moved, biases
    GPT-NeoX   rotary positions, norms that are moved, biases: what `regard train --task language` makes
    Llama      rotary positions, root mean squares, gates, no biases

What a layout has and a model has not is written out (a gain of ones, a bias of zeros); √D on the embeddings
goes into the matrix, and out again by the last norm. What fits nowhere is refused with the words that would.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from torch import Tensor

from regard.config import Config
from regard.errors import ModelError
from regard.interop import byte_level
from regard.interop.gpt2 import ACTIVATIONS, GPT2, NEOX, NORMS, PRODUCTS, Names
from regard.models.folder import Loaded

Named = Iterator[tuple[str, Tensor]]


class Weights:
    """The tensors of a decoder by name; what it has not learned is one or zero."""

    def __init__(self, model: Any, config: Config) -> None:
        self.state: dict[str, Tensor] = {name: tensor.detach() for name, tensor in model.state_dict().items()}
        self.config, self.layers = config, config.model.decoder_layers
        self.width = config.model.d_model
        self.scale: float = model.embedding.scale
        self.output = model.output_weight.detach()

    def gain(self, name: str) -> Tensor:
        """What a norm multiplies with; the last one takes √D of the embeddings out again."""
        gain = self.state.get(f"{name}.weight", torch.ones(self.width))
        return gain / self.scale if self._last(name) else gain

    def bias(self, name: str, rows: int | None = None) -> Tensor:
        """What is added, by a norm or a product of so many rows."""
        bias = self.state.get(f"{name}.bias", torch.zeros(rows or self.width))
        return bias / self.scale if self._last(name) else bias

    def _last(self, name: str) -> bool:
        return name == "decoder_norm" and self.scale != 1 and self.config.model.tied == "all"

    def embedding(self) -> Tensor:
        """The embeddings, √D in them."""
        table = self.state["embedding.weight"]
        return table if self.scale == 1 else table * self.scale

    def product(self, name: str) -> tuple[Tensor, Tensor]:
        """The matrix and the bias of a product."""
        matrix = self.state[f"{name}.weight"]
        return matrix, self.bias(name, len(matrix))


@dataclass(frozen=True)
class Layout:
    """One of their architectures: what fits into it, its settings, its tensors."""

    name: str
    words: Mapping[str, tuple[Any, ...]]  # by config key, what it takes beside what all of them do
    settings: Callable[[Config], dict[str, Any]]
    tensors: Callable[[Weights], Named]


def write(loaded: Loaded, out: Path) -> None:
    """A folder that AutoModelForCausalLM and AutoTokenizer open."""
    layout = fitting(loaded.config)
    found = dict(layout.tensors(Weights(loaded.model, loaded.config)))
    tensors = {name: tensor.contiguous().clone() for name, tensor in found.items()}
    safetensors.torch.save_file(tensors, str(out / "model.safetensors"), metadata={"format": "pt"})
    specials = loaded.tokenizer.specials
    ids = {"bos_token_id": specials.begin, "eos_token_id": specials.end, "pad_token_id": specials.pad}
    never = {"suppress_tokens": list(specials.never)} if specials.never else {}
    _write_json(out / "config.json", layout.settings(loaded.config) | ids | {"dtype": "float32"})
    _write_json(out / "generation_config.json", ids | never)
    byte_level.write(loaded.tokenizer, out)


def fitting(config: Config) -> Layout:
    """The layout that a model fits into; ModelError names what would make it fit the nearest."""
    wrong = {layout.name: list(_strange(config, layout)) for layout in LAYOUTS}
    for layout in LAYOUTS:
        if not wrong[layout.name]:
            return layout
    name = min(wrong, key=lambda each: len(wrong[each]))
    words = " and ".join(f"{key} {' or '.join(map(str, allowed))}" for key, _, allowed in wrong[name])
    held = ", ".join(f"{key}={value}" for key, value, _ in wrong[name])
    raise ModelError(
        f"Hugging Face has no layout for {held}; {name} would hold a model with {words} (see docs/interop.md)"
    )


def _strange(config: Config, layout: Layout) -> Iterator[tuple[str, Any, tuple[Any, ...]]]:
    """What of a config a layout cannot hold: the key, its value, what it takes."""
    for key, allowed in (COMMON | dict(layout.words)).items():
        table, _, leaf = key.partition(".")
        value = getattr(getattr(config, table), leaf)
        if value not in allowed:
            yield key, value, allowed


def _write_json(path: Path, tree: Any) -> None:
    path.write_text(json.dumps(tree, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


# GPT-2 and GPT-NeoX ------------------------------------------------------------------------------


def _gpt2(config: Config) -> dict[str, Any]:
    shape = config.model
    return {
        "architectures": ["GPT2LMHeadModel"],
        "model_type": "gpt2",
        "n_embd": shape.d_model,
        "n_head": shape.decoder_heads or shape.n_heads,
        "n_layer": shape.decoder_layers,
        "n_inner": shape.decoder_d_ff or shape.d_ff,
        "n_positions": config.positions.max_length,
        "vocab_size": shape.vocab_size,
        "activation_function": ACTIVATIONS[shape.activation],
        "layer_norm_epsilon": shape.norm_eps,
        "resid_pdrop": max(0.0, shape.dropout),
        "embd_pdrop": max(0.0, shape.dropout),
        "attn_pdrop": config.attention.dropout,
        "tie_word_embeddings": shape.tied == "all",
    }


def _neox(config: Config) -> dict[str, Any]:
    shape = config.model
    return {
        "architectures": ["GPTNeoXForCausalLM"],
        "model_type": "gpt_neox",
        "hidden_size": shape.d_model,
        "num_attention_heads": shape.decoder_heads or shape.n_heads,
        "num_hidden_layers": shape.decoder_layers,
        "intermediate_size": shape.decoder_d_ff or shape.d_ff,
        "max_position_embeddings": config.positions.max_length,
        "vocab_size": shape.vocab_size,
        "hidden_act": ACTIVATIONS[shape.activation],
        "layer_norm_eps": shape.norm_eps,
        "hidden_dropout": max(0.0, shape.dropout),
        "attention_dropout": config.attention.dropout,
        "rotary_pct": 1.0,
        "rotary_emb_base": 10000,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 1.0},
        "use_parallel_residual": False,
        "attention_bias": True,
        "tie_word_embeddings": shape.tied == "all",
    }


def _moved(names: Names, w: Weights) -> Named:
    """The tensors of a layout whose norms are moved, made of ours."""
    start, heads = names.prefix, w.config.model.decoder_heads or w.config.model.n_heads
    yield f"{start}{names.embedding}.weight", w.embedding()
    if names.places:
        yield f"{start}{names.places}.weight", w.state["embedding.positions.table"]
    yield from _norm(f"{start}{names.norm}", "decoder_norm", w)
    if w.config.model.tied != "all":
        yield f"{names.output}.weight", w.output
    for i in range(w.layers):
        here, there = f"decoder.{i}", f"{start}{names.layers}.{i}"
        for ours, theirs in zip(NORMS, names.norms, strict=True):
            yield from _norm(f"{there}.{theirs}", f"{here}.{ours}", w)
        parts = [w.product(f"{here}.attention.{name}") for name in ("query", "key_value")]
        joined = [names.mixed(torch.cat(part), heads) for part in zip(*parts, strict=True)]
        products = [joined, *(w.product(f"{here}.{ours}") for ours in PRODUCTS)]
        for name, (matrix, bias) in zip((names.joined, *names.products), products, strict=True):
            yield f"{there}.{name}.weight", matrix.t() if names.turned else matrix
            yield f"{there}.{name}.bias", bias


def _norm(there: str, here: str, w: Weights) -> Named:
    yield f"{there}.weight", w.gain(here)
    yield f"{there}.bias", w.bias(here)


# Llama -------------------------------------------------------------------------------------------


def _llama(config: Config) -> dict[str, Any]:
    shape = config.model
    heads = shape.decoder_heads or shape.n_heads
    return {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": shape.d_model,
        "num_attention_heads": heads,
        "num_key_value_heads": shape.kv_heads or heads,
        "num_hidden_layers": shape.decoder_layers,
        "intermediate_size": shape.decoder_d_ff or shape.d_ff,
        "max_position_embeddings": config.positions.max_length,
        "vocab_size": shape.vocab_size,
        "hidden_act": "silu",
        "rms_norm_eps": shape.norm_eps,
        "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
        "attention_bias": False,
        "mlp_bias": False,
        "attention_dropout": config.attention.dropout,
        "tie_word_embeddings": shape.tied == "all",
    }


def _llama_tensors(w: Weights) -> Named:
    yield "model.embed_tokens.weight", w.embedding()
    yield "model.norm.weight", w.gain("decoder_norm")
    if w.config.model.tied != "all":
        yield "lm_head.weight", w.output
    for i in range(w.layers):
        here, there = f"decoder.{i}", f"model.layers.{i}"
        yield f"{there}.input_layernorm.weight", w.gain(f"{here}.around_attention.norm")
        yield f"{there}.post_attention_layernorm.weight", w.gain(f"{here}.around_feed_forward.norm")
        yield f"{there}.self_attn.q_proj.weight", w.state[f"{here}.attention.query.weight"]
        yield f"{there}.self_attn.o_proj.weight", w.state[f"{here}.attention.out.weight"]
        key, value = w.state[f"{here}.attention.key_value.weight"].chunk(2)
        yield f"{there}.self_attn.k_proj.weight", key
        yield f"{there}.self_attn.v_proj.weight", value
        gate, up = w.state[f"{here}.feed_forward.inner.weight"].chunk(2)
        yield f"{there}.mlp.gate_proj.weight", gate
        yield f"{there}.mlp.up_proj.weight", up
        yield f"{there}.mlp.down_proj.weight", w.state[f"{here}.feed_forward.outer.weight"]


COMMON: dict[str, tuple[Any, ...]] = {
    "model.kind": ("decoder",),
    "attention.kind": ("full",),
    "model.bigrams": (0,),
    "attention.score": ("scaled-dot",),
}
MOVED: dict[str, tuple[Any, ...]] = {"model.norm": ("pre",), "model.activation": tuple(ACTIVATIONS)}
LAYOUTS = (
    Layout("GPT-2", MOVED | {"positions.kind": ("learned",)}, _gpt2, partial(_moved, GPT2)),
    Layout("GPT-NeoX", MOVED | {"positions.kind": ("rotary",)}, _neox, partial(_moved, NEOX)),
    Layout(
        "Llama",
        {
            "positions.kind": ("rotary",),
            "model.norm": ("pre-rms",),
            "model.activation": ("swiglu",),
            "model.bias": (False,),
        },
        _llama,
        _llama_tensors,
    ),
)
