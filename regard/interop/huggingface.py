"""Hugging Face transformers: the Marian layout (post-norm, the opus-mt translators) and Pegasus's (pre-norm).

Both hold a Transformer with sinusoids in [sin | cos] halves. M2M100, which is pre-norm too, has other
frequencies (log 10000 / (D/2 - 1)), so that no model of ours has the same logits there. Names of tensors are
told once, in `names`, and serve both ways.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import safetensors.torch
from torch import Tensor

from regard.config import Config, ModelConfig
from regard.interop import sentencepiece
from regard.interop.parts import longest, plain, position_table
from regard.layers.residual import gain_and_bias
from regard.models.folder import Loaded
from regard.models.transformer import Transformer
from regard.text.normalise import SPACE_MARK
from regard.text.tokenizer import Tokenizer

SIDES = ("encoder", "decoder")
_SUB_LAYERS = {
    "attention": ("self_attn", "self_attn_layer_norm"),
    "cross": ("encoder_attn", "encoder_attn_layer_norm"),
}
_PROJECTIONS = {"query": ("q_proj",), "key_value": ("k_proj", "v_proj"), "out": ("out_proj",)}


def names(shape: ModelConfig) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Each tensor of ours, and those of theirs that it holds, one above the other."""
    shared = shape.tied in ("all", "embeddings")
    yield "embedding.weight", ("model.shared.weight" if shared else "model.encoder.embed_tokens.weight",)
    if not shared:
        yield "own_target.weight", ("model.decoder.embed_tokens.weight",)
    if shape.tied in ("embeddings", "none"):
        yield "own_output", ("lm_head.weight",)
    for side, layers in (("encoder", shape.encoder_layers), ("decoder", shape.decoder_layers)):
        for number in range(layers):
            yield from _layer_names(side, number)
        if shape.norm == "pre":
            yield from _both(f"{side}_norm", (f"model.{side}.layer_norm",))


def _layer_names(side: str, number: int) -> Iterator[tuple[str, tuple[str, ...]]]:
    here, there = f"{side}.{number}", f"model.{side}.layers.{number}"
    for name in ("attention", "cross") if side == "decoder" else ("attention",):
        heads, norm = _SUB_LAYERS[name]
        for projection, parts in _PROJECTIONS.items():
            yield from _both(
                f"{here}.{name}.{projection}", tuple(f"{there}.{heads}.{part}" for part in parts)
            )
        yield from _both(f"{here}.around_{name}.norm", (f"{there}.{norm}",))
    yield from _both(f"{here}.feed_forward.inner", (f"{there}.fc1",))
    yield from _both(f"{here}.feed_forward.outer", (f"{there}.fc2",))
    yield from _both(f"{here}.around_feed_forward.norm", (f"{there}.final_layer_norm",))


def _both(here: str, there: tuple[str, ...]) -> Iterator[tuple[str, tuple[str, ...]]]:
    for kind in ("weight", "bias"):
        yield f"{here}.{kind}", tuple(f"{name}.{kind}" for name in there)


# Writing -----------------------------------------------------------------------------------------


def write(loaded: Loaded, out: Path) -> None:
    """A folder that transformers opens: MarianMTModel, or PegasusForConditionalGeneration if pre-norm."""
    config = loaded.config
    post = config.model.norm == "post"
    allowed = {} if post else {"model.tied": ("all", "embeddings")}
    model = plain(
        loaded.model,
        config,
        "Hugging Face's Marian layout" if post else "Hugging Face's Pegasus layout",
        allowed,
    )
    safetensors.torch.save_file(
        tensors(model, config), str(out / "model.safetensors"), metadata={"format": "pt"}
    )
    _write_json(out / "config.json", _config(config, loaded.tokenizer))
    _write_json(out / "generation_config.json", _generation(config, loaded.tokenizer))
    if post or loaded.tokenizer.models:
        _write_marian_tokenizer(loaded.tokenizer, out)
    else:
        _write_fast_tokenizer(loaded.tokenizer, out)


def tensors(model: Transformer, config: Config) -> dict[str, Tensor]:
    """The weights under their names; those that are tied once."""
    state = model.state_dict()
    for name, norm in model.named_modules():
        if getattr(norm, "native", None) == "moved":
            state |= zip((f"{name}.weight", f"{name}.bias"), gain_and_bias(norm), strict=True)
    found: dict[str, Tensor] = {}
    for ours, theirs in names(config.model):
        found |= zip(theirs, state[ours].chunk(len(theirs)), strict=True)
    bias = (
        model.output_bias
        if model.output_bias is not None
        else model.output_weight.new_zeros(len(model.output_weight))
    )
    found["final_logits_bias"] = bias[None]
    if config.model.tied == "embeddings":  # transformers shares them only together with the output
        found |= {f"model.{side}.embed_tokens.weight": state["embedding.weight"] for side in SIDES}
    if config.model.norm == "pre":  # Marian makes them itself
        found |= {f"model.{side}.embed_positions.weight": position_table(model, config) for side in SIDES}
    return {name: tensor.detach().contiguous().clone() for name, tensor in found.items()}


def _config(config: Config, tokenizer: Tokenizer) -> dict[str, Any]:
    shape, specials = config.model, tokenizer.specials
    post = shape.norm == "post"
    tree = {
        "architectures": ["MarianMTModel" if post else "PegasusForConditionalGeneration"],
        "model_type": "marian" if post else "pegasus",
        "vocab_size": shape.vocab_size,
        "d_model": shape.d_model,
        "encoder_layers": shape.encoder_layers,
        "decoder_layers": shape.decoder_layers,
        "encoder_attention_heads": shape.n_heads,
        "decoder_attention_heads": shape.decoder_heads or shape.n_heads,
        "encoder_ffn_dim": shape.d_ff,
        "decoder_ffn_dim": shape.decoder_d_ff or shape.d_ff,
        "activation_function": shape.activation,
        "dropout": max(0.0, shape.dropout),
        "attention_dropout": config.attention.dropout,
        "max_position_embeddings": longest(config),
        "scale_embedding": shape.scale_embedding,
        "static_position_embeddings": True,
        "normalize_before": not post,
        "tie_word_embeddings": shape.tied in ("all", "target"),
        "pad_token_id": specials.pad,
        "bos_token_id": specials.begin,
        "eos_token_id": specials.end,
        "decoder_start_token_id": specials.begin,
        "forced_eos_token_id": None,
        "dtype": "float32",
    }
    if post:
        tree["share_encoder_decoder_embeddings"] = shape.tied in ("all", "embeddings")
        tree["decoder_vocab_size"] = shape.target_vocab_size or shape.vocab_size
    return tree


def _generation(config: Config, tokenizer: Tokenizer) -> dict[str, Any]:
    decode, specials = config.decode, tokenizer.specials
    return {
        "bad_words_ids": [[number] for number in specials.never],
        "decoder_start_token_id": specials.begin,
        "eos_token_id": specials.end,
        "pad_token_id": specials.pad,
        "num_beams": decode.beam,
        "length_penalty": decode.length_penalty,
        "max_length": longest(config),
        "renormalize_logits": False,
    }


def _write_marian_tokenizer(tokenizer: Tokenizer, out: Path) -> None:
    """source.spm, target.spm, vocab.json: what MarianTokenizer reads."""
    source = sentencepiece.write(tokenizer, 0)
    same = not tokenizer.models or tokenizer.models[0] == tokenizer.models[1]
    (out / "source.spm").write_bytes(source)
    (out / "target.spm").write_bytes(source if same else sentencepiece.write(tokenizer, 1))
    _write_json(out / "vocab.json", {piece: number for number, piece in enumerate(tokenizer.pieces)})
    apart = tokenizer.pieces != tokenizer.target_pieces
    settings = {
        "tokenizer_class": "MarianTokenizer",
        "unk_token": tokenizer.pieces[tokenizer.unknown_id],
        "eos_token": tokenizer.target_pieces[tokenizer.end_id],
        "pad_token": tokenizer.pieces[tokenizer.pad_id],
        "separate_vocabs": apart,
        "clean_up_tokenization_spaces": False,
    }
    if apart:
        pieces = {piece: number for number, piece in enumerate(tokenizer.target_pieces)}
        _write_json(out / "target_vocab.json", pieces)
    _write_json(out / "tokenizer_config.json", settings)


def _write_fast_tokenizer(tokenizer: Tokenizer, out: Path) -> None:
    """tokenizer.json with our normalisation in it: what AutoTokenizer reads."""
    from tokenizers import Regex, decoders, normalizers
    from tokenizers import Tokenizer as RustTokenizer
    from tokenizers.processors import TemplateProcessing

    rust = RustTokenizer.from_str(tokenizer.to_json())
    ends = Regex(r"^[ \t\r\x{FEFF}]+|[ \t\r\x{FEFF}]+$")
    rust.normalizer = normalizers.Sequence(
        [
            normalizers.Replace(Regex(r"[ \t]+"), " "),
            normalizers.Replace(SPACE_MARK, "_"),
            normalizers.NFC(),
            normalizers.Replace(ends, ""),
        ]
    )
    end = tokenizer.pieces[tokenizer.end_id]
    rust.post_processor = TemplateProcessing(single=f"$A {end}", special_tokens=[(end, tokenizer.end_id)])
    rust.decoder = decoders.Sequence(
        [
            decoders.Replace(SPACE_MARK, " "),
            decoders.ByteFallback(),
            decoders.Fuse(),
            decoders.Strip(" ", 1, 0),
        ]
    )
    (out / "tokenizer.json").write_text(rust.to_str(pretty=True), encoding="utf-8")
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": tokenizer.pieces[tokenizer.pad_id],
        "bos_token": tokenizer.pieces[tokenizer.begin_id],
        "eos_token": end,
        "clean_up_tokenization_spaces": False,
        "model_input_names": ["input_ids", "attention_mask"],
    }
    _write_json(out / "tokenizer_config.json", settings)


def _write_json(path: Path, tree: Any) -> None:
    path.write_text(json.dumps(tree, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
