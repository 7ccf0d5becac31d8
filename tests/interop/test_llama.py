"""Llama folders and files of llama2.c: transformers' logits, and real weights that tell the same story."""

import json
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from regard.data.inputs import Tokens
from regard.decoding.greedy import greedy
from regard.decoding.search import Rules
from regard.errors import ModelError
from regard.interop import known
from regard.models.folder import Loaded

transformers = pytest.importorskip("transformers")

PIECES = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
LETTERS = ["▁", *"thecasonm.", "th", "▁t", "▁th", "▁the", "at", "▁c", "▁cat", "▁s", "▁sat"]
V, LENGTH = len(PIECES) + len(LETTERS), 37


def _config(**more: Any) -> Any:
    shape = {"hidden_size": 24, "intermediate_size": 34, "num_hidden_layers": 2, "vocab_size": V}
    heads = {"num_attention_heads": 6, "num_key_value_heads": 2, "max_position_embeddings": LENGTH}
    return transformers.LlamaConfig(
        **(shape | heads | {"initializer_range": 0.3, "rms_norm_eps": 1e-5} | more)
    )


def _write_tokenizer(folder: Path) -> None:
    vocab = {piece: number for number, piece in enumerate([*PIECES, *LETTERS])}
    model = {"type": "BPE", "vocab": vocab, "merges": [], "byte_fallback": True}
    (folder / "tokenizer.json").write_text(json.dumps({"model": model}), encoding="utf-8")


@pytest.fixture(scope="module", params=[True, False], ids=["tied", "untied"])
def folder(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(5)
    place = tmp_path_factory.mktemp("llama")
    transformers.LlamaForCausalLM(_config(tie_word_embeddings=request.param)).save_pretrained(place)
    _write_tokenizer(place)
    return place


def test_logits_are_those_of_transformers(folder: Path) -> None:
    ours, theirs = known.read(folder), transformers.LlamaForCausalLM.from_pretrained(folder).eval()
    ids = torch.randint(0, V, (5, 31), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        found, wanted = ours.model.project(ours.model(Tokens(ids))), theirs(ids).logits
    assert (found - wanted).abs().max() < 1e-4


def test_text_is_cut_by_rank_and_spelled_in_bytes(folder: Path) -> None:
    tokenizer = known.read(folder).tokenizer
    pieces = [tokenizer.token(number) for number in tokenizer.encode("the cat sat é\n >>x<<")]
    assert pieces[:3] == ["▁the", "▁cat", "▁sat"]
    assert "<0xC3>" in pieces
    for text in ("the cat sat", "  two spaces é\n\n\ttab ", ">>fra<< the"):
        assert tokenizer.decode(tokenizer.encode(text)) == text


def _file(folder: Path, model: Any, *, tied: bool) -> Path:
    """A model of transformers as llama2.c's export lays it out."""
    config, state = model.config, {name: t.detach().numpy() for name, t in model.state_dict().items()}
    width = config.hidden_size // config.num_attention_heads

    def pairs(matrix: Any) -> Any:
        """Halves that are turned become neighbours."""
        return matrix.reshape(-1, 2, width // 2, matrix.shape[1]).transpose(0, 2, 1, 3).reshape(matrix.shape)

    def layers(name: str, as_: Any = lambda matrix: matrix) -> list[Any]:
        return [as_(state[f"model.layers.{i}.{name}.weight"]) for i in range(config.num_hidden_layers)]

    parts = [state["model.embed_tokens.weight"], *layers("input_layernorm")]
    parts += [*layers("self_attn.q_proj", pairs), *layers("self_attn.k_proj", pairs)]
    parts += [*layers("self_attn.v_proj"), *layers("self_attn.o_proj"), *layers("post_attention_layernorm")]
    parts += [*layers("mlp.gate_proj"), *layers("mlp.down_proj"), *layers("mlp.up_proj")]
    parts += [state["model.norm.weight"], np.zeros((2 * LENGTH, width // 2))]
    parts += [] if tied else [state["lm_head.weight"]]
    heads = config.num_attention_heads, config.num_key_value_heads
    head = (
        config.hidden_size,
        config.intermediate_size,
        config.num_hidden_layers,
        *heads,
        V if tied else -V,
        LENGTH,
    )
    data = struct.pack("<7i", *head) + b"".join(np.ascontiguousarray(p, "<f4").tobytes() for p in parts)
    (folder / "model.bin").write_bytes(data)
    names = [
        "<unk>",
        "\n<s>\n",
        "\n</s>\n",
        *map(chr, range(256)),
        *(piece.replace("▁", " ") for piece in LETTERS),
    ]
    raw = [name.encode() for name in names]
    rows = (struct.pack("<fi", -float(i), len(each)) + each for i, each in enumerate(raw))
    (folder / "tokenizer.bin").write_bytes(struct.pack("<i", max(map(len, raw))) + b"".join(rows))
    return folder / "model.bin"


def test_a_file_of_llama2c_is_the_same_model(folder: Path, tmp_path: Path) -> None:
    theirs = transformers.LlamaForCausalLM.from_pretrained(folder).eval()
    path = _file(tmp_path, theirs, tied=theirs.config.tie_word_embeddings)
    ours, other = known.read(path), known.read(folder)
    assert ours.tokenizer.encode("the cat sat é") == other.tokenizer.encode("the cat sat é")
    ids = torch.randint(0, V, (2, 31), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        found, wanted = ours.model.project(ours.model(Tokens(ids))), theirs(ids).logits
    assert (found - wanted).abs().max() < 1e-4


def test_files_that_are_cut_or_lie_are_refused(folder: Path, tmp_path: Path) -> None:
    path = _file(tmp_path, transformers.LlamaForCausalLM.from_pretrained(folder), tied=False)
    whole, pieces = path.read_bytes(), (tmp_path / "tokenizer.bin").read_bytes()
    for data, words in (
        (whole[:-4], "bytes, a model of its shape has"),
        (whole[:20], "too short"),
        (struct.pack("<7i", 24, 34, -2, 6, 2, V, LENGTH) + whole[28:], "its first numbers say"),
        (
            struct.pack("<7i", 2**24, 2**24, 2**20, 1, 1, 2**20, 2**20),
            "a model of its shape has|tensors|must be",
        ),
    ):
        path.write_bytes(data)
        with pytest.raises(ModelError, match=words):
            known.read(path)
    path.write_bytes(whole)
    for broken in (pieces[:50], pieces[:8] + b"\xff\xff\xff\x7f" + pieces[12:]):
        (tmp_path / "tokenizer.bin").write_bytes(broken)
        with pytest.raises(ModelError, match="does not hold the"):
            known.read(path)
    (tmp_path / "tokenizer.bin").unlink()
    with pytest.raises(ModelError, match="is missing"):
        known.read(path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rope_parameters": {"rope_type": "llama3", "rope_theta": 10000.0}}, "rope_type"),
        (
            {"rope_parameters": {"rope_type": "default", "rope_theta": 500000.0}},
            "rope_theta 500000 is not supported",
        ),
        ({"hidden_act": "gelu"}, "hidden_act"),
        ({"attention_bias": True}, "attention_bias"),
        ({"head_dim": 8}, "head_dim 8 is not supported; ours has 4"),
        ({"num_hidden_layers": 3}, "lacks the tensor"),
        ({"num_hidden_layers": None}, "does not say decoder_layers"),
    ],
)
def test_a_folder_that_does_not_fit_is_refused(
    folder: Path, with_settings: Callable[..., Path], change: dict[str, Any], words: str
) -> None:
    with pytest.raises(ModelError, match=words):
        known.read(with_settings(folder, **change))


# Real weights ------------------------------------------------------------------------------------


def _story(loaded: Loaded, text: str, tokens: int) -> list[int]:
    """What greedy search writes after a beginning, by the readable model."""
    prompt = [loaded.tokenizer.begin_id, *loaded.tokenizer.encode(text)]
    first = torch.tensor(prompt[-1:])
    rules = Rules(
        torch.tensor([0]),
        torch.tensor([tokens]),
        specials=loaded.tokenizer.specials._replace(never=()),
        first=first,
    )
    with torch.inference_mode():
        return greedy(loaded.model, Tokens(torch.tensor([prompt[:-1]])), rules)[0].ids


def test_stories15m_writes_what_transformers_writes(real: Any, tmp_path: Path) -> None:
    """The real weights, from llama2.c's file and from the Llama folder that transformers makes of them."""
    ours = known.read(real("stories15M") / "stories15M.bin")
    shape = ours.config.model
    config = transformers.LlamaConfig(
        hidden_size=shape.d_model,
        intermediate_size=shape.d_ff,
        num_hidden_layers=shape.decoder_layers,
        num_attention_heads=shape.n_heads,
        vocab_size=shape.vocab_size,
        max_position_embeddings=256,
        rms_norm_eps=1e-5,
        tie_word_embeddings=True,
        bos_token_id=1,
        eos_token_id=2,
    )
    theirs = transformers.LlamaForCausalLM(config).eval()
    theirs.load_state_dict(_their_names(ours), strict=False)
    theirs.save_pretrained(tmp_path)
    prompt = torch.tensor([[1, *ours.tokenizer.encode("Once upon a time")]])
    wanted = theirs.generate(prompt, do_sample=False, max_new_tokens=500, eos_token_id=2, pad_token_id=2)
    written = wanted[0, prompt.shape[1] :].tolist()
    written = written[: written.index(2)] if 2 in written else written
    assert _story(ours, "Once upon a time", 500) == written
    text = ours.tokenizer.decode(written)
    assert text.startswith(", there was a little girl named Lily")
    vocab = {piece: number for number, piece in enumerate(ours.tokenizer.pieces)}
    model = {"type": "BPE", "vocab": vocab, "merges": [], "byte_fallback": True}
    (tmp_path / "tokenizer.json").write_text(json.dumps({"model": model}), encoding="utf-8")
    assert _story(known.read(tmp_path), "Once upon a time", 500) == written


def _their_names(ours: Loaded) -> dict[str, torch.Tensor]:
    """Our tensors under the names of transformers."""
    own, width = ours.model.state_dict(), ours.config.model.d_ff
    found = {
        "model.embed_tokens.weight": own["embedding.weight"],
        "model.norm.weight": own["decoder_norm.weight"],
    }
    for i in range(ours.config.model.decoder_layers):
        here, there = f"decoder.{i}", f"model.layers.{i}"
        k, v = own[f"{here}.attention.key_value.weight"].chunk(2)
        inner = own[f"{here}.feed_forward.inner.weight"]
        found |= {
            f"{there}.input_layernorm.weight": own[f"{here}.around_attention.norm.weight"],
            f"{there}.post_attention_layernorm.weight": own[f"{here}.around_feed_forward.norm.weight"],
            f"{there}.self_attn.q_proj.weight": own[f"{here}.attention.query.weight"],
            f"{there}.self_attn.k_proj.weight": k,
            f"{there}.self_attn.v_proj.weight": v,
            f"{there}.self_attn.o_proj.weight": own[f"{here}.attention.out.weight"],
            f"{there}.mlp.gate_proj.weight": inner[:width],
            f"{there}.mlp.up_proj.weight": inner[width:],
            f"{there}.mlp.down_proj.weight": own[f"{here}.feed_forward.outer.weight"],
        }
    return found
