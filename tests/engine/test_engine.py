"""The engine against its readable twin: in fp32 the same tokens, for every shape and whatever the batch."""

import ctypes
import threading
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from regard.config import Config, DecodeConfig, merge
from regard.data.inputs import pad_sources
from regard.decoding.beam import beam_search
from regard.decoding.search import Hypothesis, Rules
from regard.engine import library, path
from regard.engine.engine import Engine
from regard.engine.weights import lay_out
from regard.errors import ModelError, UsageError
from regard.models import build
from regard.tasks.translation.translator import load_readable
from regard.text.tokenizer import OUR_SPECIALS

pytestmark = pytest.mark.skipif(path.available() is not None, reason="the native library is not built")

VOCAB = 283
SHAPES = {
    "pre": {},
    "post": {"model.norm": "post"},
    "gains": {"model.norm_weights": "gain"},
    "bare norms": {"model.norm": "post", "model.norm_weights": "none"},
    "prime": {"model.d_model": 33, "model.n_heads": 3, "model.d_ff": 47},
    "grouped": {"model.kv_heads": 2, "model.n_heads": 4},
    "swish": {"model.activation": "swish", "model.output_bias": True},
    "gelu": {"model.activation": "gelu", "attention.score": "dot", "positions.kind": "none"},
    "learned": {"positions.kind": "learned", "positions.max_length": 19},
    "rotary": {"positions.kind": "rotary"},
    "rotary grouped": {"positions.kind": "rotary", "model.n_heads": 4, "model.kv_heads": 2},
    "root mean squares": {"model.norm": "pre-rms", "model.bias": False, "model.activation": "relu2"},
    "post root mean squares": {"model.norm": "post-rms", "model.norm_weights": "none"},
    "tanh": {"model.activation": "gelu-tanh", "model.bias": False, "model.decoder_d_ff": 31},
    "gated": {"model.activation": "swiglu", "model.d_ff": 47, "model.bias": False, "model.norm": "pre-rms"},
    "gated gelu": {"model.activation": "geglu", "model.d_ff": 23, "model.norm": "post"},
    "recurrent": {"model.kind": "ssru", "model.norm": "post"},
    "recurrent prime": {"model.kind": "ssru", "model.d_model": 33, "model.n_heads": 3, "model.kv_heads": 1},
    "untied": {"model.tied": "none", "model.decoder_heads": 2, "model.decoder_d_ff": 23},
}


def transformer(overrides: dict[str, object]) -> torch.nn.Module:
    """A model with random weights, large enough that outputs differ and some end."""
    plain = {"model.d_model": 32, "model.d_ff": 64, "model.vocab_size": VOCAB, "model.encoder_layers": 2}
    config = merge(Config(), {**plain, "model.decoder_layers": 2, **overrides})
    torch.manual_seed(7)
    model = build(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model


def sentences() -> list[list[int]]:
    generator = torch.Generator().manual_seed(3)
    lengths = (1, 7, 2, 5, 11, 3, 4)
    made = [torch.randint(4, VOCAB, (n,), generator=generator).tolist() for n in lengths]
    return [[*ids, OUR_SPECIALS.end] for ids in made]


def rules_for(model: torch.nn.Module, sources: list[list[int]], **decode: object) -> Rules:
    config = DecodeConfig(**{"max_ratio": 1.0, "max_extra": 4, **decode})
    return Rules.of(config, map(len, sources), max_length=model.max_length, vocab_size=VOCAB - 2)


def same(found: list[list[Hypothesis]], wanted: list[list[Hypothesis]], tolerance: float = 1e-4) -> None:
    assert [[each.ids for each in outputs] for outputs in found] == [
        [each.ids for each in outputs] for outputs in wanted
    ]
    assert [[each.truncated for each in o] for o in found] == [[each.truncated for each in o] for o in wanted]
    for ours, theirs in zip(found, wanted, strict=True):
        assert [each.score for each in ours] == pytest.approx(
            [each.score for each in theirs], abs=tolerance, rel=1e-4
        )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("beam", "penalty"), [(1, 1.0), (5, 1.4), (3, 0.0)])
def test_fp32_gives_what_the_readable_search_gives(shape: str, beam: int, penalty: float):
    model, sources = transformer(SHAPES[shape]), sentences()
    rules = rules_for(model, sources, length_penalty=penalty, min_ratio=0.3)
    with torch.inference_mode():
        wanted = beam_search(model, pad_sources(sources), rules, beam=beam, n_best=beam)
    same(Engine(model, precision="fp32").search(sources, rules, beam=beam, n_best=beam), wanted)


@pytest.mark.parametrize("shape", ["pre", "prime", "untied"])
def test_bf16_is_fp32_with_rounded_matrices(shape: str):
    model, sources = transformer(SHAPES[shape]), sentences()
    rules = rules_for(model, sources)
    found = Engine(model, precision="bf16").search(sources, rules, beam=3, n_best=3)
    weights = lay_out(model)
    rounded = [
        pair if pair[0] is None or pair[0].dim() == 1 else (nearest(pair[0]), pair[1])
        for pair in weights.tensors
    ]
    rounded[-3:] = weights.tensors[-3:]  # embeddings and pairs are read, not multiplied with
    engine = Engine(model, precision="fp32")
    engine._packed = library.Packed(replace(weights, tensors=rounded), precision="fp32")
    assert found == engine.search(sources, rules, beam=3, n_best=3)
    assert found != Engine(model, precision="fp32").search(sources, rules, beam=3, n_best=3)


def nearest(weight: torch.Tensor) -> torch.Tensor:
    return weight.bfloat16().float().contiguous()


@pytest.mark.parametrize("precision", ["fp32", "bf16", "int8"])
@pytest.mark.parametrize("beam", [1, 5])
def test_batches_neighbours_and_threads_change_nothing(precision: str, beam: int):
    model, sources = transformer({}), sentences()
    rules = rules_for(model, sources)
    whole = Engine(model, precision=precision, threads=1).search(sources, rules, beam=beam)
    for threads, batch_size in ((1, 1), (2, 1), (2, 3), (3, 32)):
        engine = Engine(model, precision=precision, threads=threads)
        assert engine.search(sources, rules, beam=beam, batch_size=batch_size) == whole


def test_int8_is_close_to_fp32():
    model, sources = transformer({}), sentences()
    rules = rules_for(model, sources)
    exact = Engine(model, precision="fp32").search(sources, rules, beam=1)
    rough = Engine(model, precision="int8").search(sources, rules, beam=1)
    agree = [a for a, b in zip(exact, rough, strict=True) if a[0].ids == b[0].ids]
    assert agree
    same([b for a, b in zip(exact, rough, strict=True) if a in agree], agree, tolerance=0.1)


def test_calls_at_the_same_time_have_the_same_answers():
    model, sources = transformer({}), sentences()
    rules = rules_for(model, sources)
    engine = Engine(model, threads=2)
    wanted, found = engine.search(sources, rules, beam=4), []
    threads = [
        threading.Thread(target=lambda: found.append(engine.search(sources, rules, beam=4))) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [wanted] * 4


def test_a_cancelled_call_ends():
    model, sources = transformer({}), sentences()
    found = Engine(model).search(sources, rules_for(model, sources), cancel=ctypes.c_int32(1))
    assert found == [[] for _ in sources]


def test_broken_weights_and_wrong_wishes_are_told():
    model, sources = transformer({}), sentences()
    rules = rules_for(model, sources)
    with pytest.raises(UsageError, match=r"n_best \(2\) must be at least 1 and at most beam \(1\)"):
        Engine(model).search(sources, rules, n_best=2)
    with pytest.raises(UsageError, match="precision"):
        Engine(model, precision="fp8")
    with pytest.raises(ModelError, match="outside the vocabulary"):
        Engine(model).search([[VOCAB, 2]], rules_for(model, [[4, 2]]))
    with torch.no_grad():
        model.decoder[0].cross.out.bias.fill_(float("nan"))
    with pytest.raises(ModelError, match="NaN"):
        Engine(model, precision="fp32").search(sources, rules)


@pytest.mark.parametrize("beam", [1, 5])
def test_real_sentences_in_fp32(model: Path, beam: int):
    """A trained model through the whole translator."""
    readable = load_readable(model)
    fast = load_readable(model)
    fast.engine = Engine(fast.model, precision="fp32")
    lines = ["a b c", "", "d e f g a", "h", "c c c", "a b c d e f g h"] * 5
    wanted = list(readable.stream(lines, beam=beam))
    found = list(fast.stream(lines, beam=beam, batch_size=3))
    assert [each.text for each in found] == [each.text for each in wanted]
    assert [each.score for each in found] == pytest.approx([each.score for each in wanted], abs=1e-4)


def test_a_large_call_keeps_nothing_and_a_small_one_keeps_its_caches() -> None:
    engine = Engine(transformer({}), precision="fp32", threads=2)
    empty = library.held()
    for sources, keeps in ((sentences()[:3], True), ([[5] * 499] * 61, False)):
        rules = Rules.of(DecodeConfig(max_extra=3, max_ratio=0), map(len, sources), specials=OUR_SPECIALS)
        engine.search(sources, rules, beam=7)
        assert (library.held() > empty) == keeps


def test_few_bytes_for_caches_change_nothing_and_are_kept_to() -> None:
    model, sources = transformer({}), sentences()[:7]
    engine = Engine(model, precision="fp32", threads=2)
    rules = Rules.of(DecodeConfig(max_extra=90), map(len, sources), specials=OUR_SPECIALS)
    wanted = engine.search(sources, rules, beam=3, n_best=3)
    before = library.held()
    assert before > 0
    try:
        for size in (before // 3, 1):
            library.bound(size)
            assert engine.search(sources, rules, beam=3, n_best=3) == wanted
            assert library.held() < before
    finally:
        library.bound(2**30)
