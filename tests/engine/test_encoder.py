"""An encoder in the engine against its readable twin; a text's vector is its own, whatever else is read."""

import functools
import threading
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.config import Config, merge
from regard.data.inputs import Tokens, pad_sources
from regard.engine import encoder as packing
from regard.engine import path
from regard.engine.encoder import PackedEncoder
from regard.engine.engine import Engine, refusal
from regard.engine.weights import READS
from regard.errors import DataError, ModelError, UsageError
from regard.layers.pooling import POOLINGS, pool
from regard.models import build
from regard.models.encoder import Encoder

pytestmark = pytest.mark.skipif(path.available() is not None, reason="the native library is not built")

PATHS = [] if path.available() is not None else path.running()
VOCAB = 61
BERT = {
    "positions.kind": "learned",
    "positions.max_length": 67,
    "model.norm": "post",
    "model.activation": "gelu",
    "model.norm_eps": 1e-12,
    "model.embedding_norm": True,
    "model.scale_embedding": False,
}
SHAPES: dict[str, dict[str, Any]] = {
    "bert": BERT,
    "rotary": {"positions.kind": "rotary", "model.norm": "pre", "model.activation": "relu"},
    "sinusoidal": {"positions.kind": "sinusoidal", "model.norm": "post", "model.embedding_norm": True},
    "gated": {
        "positions.kind": "rotary",
        "model.norm": "pre-rms",
        "model.activation": "swiglu",
        "model.bias": False,
        "model.d_ff": 47,
        "model.n_heads": 4,
        "model.kv_heads": 2,
    },
    "prime": {**BERT, "model.d_model": 33, "model.n_heads": 3, "model.d_ff": 29, "positions.kind": "none"},
}
ROWS = [[5, 9, 2, 7], [3], [11, 60, 4, 4, 8, 1, 30], [1, 2], list(range(61)), [7] * 13]


def encoder(overrides: dict[str, Any]) -> Encoder:
    """A small model whose places differ."""
    plain = {"task": "embed", "model.kind": "encoder", "model.d_model": 32, "model.d_ff": 64}
    plain |= {"model.vocab_size": VOCAB, "model.encoder_layers": 2, "model.dropout": 0.0}
    torch.manual_seed(7)
    model = build(merge(Config(), {**plain, **overrides})).eval()
    assert isinstance(model, Encoder)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model


@torch.inference_mode()
def naive(model: Encoder, rows: list[list[int]]) -> list[torch.Tensor]:
    """The hidden states of each row, read alone."""
    return [model.encode(Tokens(torch.tensor([ids])))[0] for ids in rows]


def close(found: torch.Tensor, wanted: torch.Tensor) -> None:
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4 * float(wanted.abs().max()))


def cosine(found: torch.Tensor, wanted: torch.Tensor) -> float:
    return float(torch.cosine_similarity(found, wanted, dim=-1).min())


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", PATHS)
def test_fp32_gives_what_the_readable_encoder_gives(
    shape: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(path.FORCED, name)
    model = encoder(SHAPES[shape])
    packed = PackedEncoder(model, precision="fp32", threads=2)
    hidden = naive(model, ROWS)
    every = [list(range(len(ids))) for ids in ROWS]
    close(packed.picked(ROWS, every), torch.cat(hidden))
    padded = pad_sources(ROWS, pad_id=0)
    with torch.inference_mode():
        together = model.encode(padded)
    for pooling in POOLINGS:
        close(packed.pooled(ROWS, pooling), pool(together, padded.real, pooling))


@pytest.mark.parametrize("name", PATHS)
def test_int8_and_bf16_are_near(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(path.FORCED, name)
    model = encoder({**BERT, "model.d_model": 64, "model.d_ff": 128})
    wanted = torch.stack([each.mean(0) for each in naive(model, ROWS)])
    for precision, least in (("bf16", 0.9995), ("int8", 0.99)):
        found = PackedEncoder(model, precision=precision).pooled(ROWS, "mean")
        assert least < cosine(found, wanted) < 1 - 1e-7


@pytest.mark.parametrize("precision", ["fp32", "bf16", "int8"])
def test_alone_among_others_and_by_any_threads_the_bits_are_the_same(precision: str) -> None:
    model = encoder(BERT)
    many = ROWS * 9  # several batches for each of the threads
    alone = PackedEncoder(model, precision=precision, threads=1)
    wanted = torch.cat([alone.pooled([ids], "mean") for ids in ROWS])
    for threads in (1, 2, 3):
        packed = PackedEncoder(model, precision=precision, threads=threads)
        assert torch.equal(packed.pooled(many, "mean"), wanted.repeat(9, 1))
        assert torch.equal(packed.pooled(ROWS[4:5], "mean"), wanted[4:5])  # all threads on one text
        assert torch.equal(packed.pooled(many[::-1], "mean", threads=2), wanted.repeat(9, 1).flip(0))


@settings(max_examples=30, deadline=None)
@given(
    st.lists(
        st.lists(st.integers(0, VOCAB - 1), min_size=1, max_size=9).flatmap(
            lambda ids: st.tuples(st.just(ids), st.lists(st.integers(0, len(ids) - 1), max_size=4))
        ),
        max_size=5,
    )
)
def test_any_places_of_any_rows_in_their_order(asked: list[tuple[list[int], list[int]]]) -> None:
    model, packed = lawful()
    rows, places = [ids for ids, _ in asked], [own for _, own in asked]
    found = packed.picked(rows, places)
    assert found.shape == (sum(map(len, places)), 32)
    if len(found):
        hidden = naive(model, rows)
        close(found, torch.cat([each[own] for each, own in zip(hidden, places, strict=True)]))


@functools.cache
def lawful() -> tuple[Encoder, PackedEncoder]:
    """One model for all examples."""
    model = encoder(BERT)
    return model, PackedEncoder(model, precision="fp32", threads=2)


def test_many_rows_go_in_several_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    _, packed = lawful()
    wanted = packed.pooled(ROWS, "max")
    places = [[0, len(ids) - 1] for ids in ROWS]
    ends = packed.picked(ROWS, places)
    monkeypatch.setattr(packing, "CALL", 8)
    assert torch.equal(packed.pooled(ROWS, "max"), wanted)
    assert torch.equal(packed.picked(ROWS, places), ends)
    assert packed.pooled([], "mean").shape == packed.picked([], []).shape == (0, 32)


def test_a_row_without_places_has_zeros() -> None:
    _, packed = lawful()
    for pooling in POOLINGS:
        found = packed.pooled([[], ROWS[0]], pooling)
        assert not found[0].any()
        assert torch.equal(found[1:], packed.pooled(ROWS[:1], pooling))
    assert packed.pooled([[]], "mean").tolist() == [[0.0] * 32]


def test_threads_may_read_at_the_same_time() -> None:
    packed = PackedEncoder(encoder(BERT), threads=2)
    assert packed.precision == ("fp32" if path.path() in path.NARROW else "int8")
    wanted = packed.pooled(ROWS, "mean")
    found: dict[int, torch.Tensor] = {}

    def read(number: int) -> None:
        for _ in range(5):
            found[number] = packed.pooled(ROWS[number:] + ROWS[:number], "mean", threads=1 + number % 2)

    threads = [threading.Thread(target=read, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, vectors in found.items():
        assert torch.equal(vectors, wanted.roll(-number, 0))


def test_what_it_does_not_know_and_what_does_not_fit_is_told() -> None:
    model, packed = lawful()
    with pytest.raises(DataError, match="a sequence of 68 tokens is longer than the 67 learned positions"):
        packed.pooled([[1] * 68], "mean")
    with pytest.raises(ModelError, match=f"outside the vocabulary of {VOCAB} tokens"):
        packed.pooled([[VOCAB]], "mean")
    with pytest.raises(UsageError, match="a place outside a row of 2"):
        packed.picked([[1, 2]], [[2]])
    with pytest.raises(UsageError, match=r"precision \(fp8\)"):
        PackedEncoder(model, precision="fp8")
    assert "Alibi positions" in str(refusal(encoder({"positions.kind": "alibi"}), READS))
    assert "BigBird attention" in str(refusal(encoder({"attention.kind": "bigbird"}), READS))
    with pytest.raises(UsageError, match="the model kind Encoder"):
        Engine(model)  # type: ignore[arg-type]
