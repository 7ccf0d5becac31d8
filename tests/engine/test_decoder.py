"""A decoder in the engine against its readable twin; however its rows come about, the same bits."""

import functools
import threading
from collections.abc import Generator
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.config import Config, merge
from regard.data.inputs import Tokens, pad_prompts
from regard.engine import path
from regard.engine.decoder import PackedDecoder, PackedState, undivided
from regard.engine.engine import Engine, refusal
from regard.engine.weights import ALONE
from regard.errors import DataError, ModelError, UsageError
from regard.layers.embedding import Bigrams
from regard.models import build
from regard.models.decoder import Decoder

pytestmark = pytest.mark.skipif(path.available() is not None, reason="the native library is not built")

PATHS = [] if path.available() is not None else path.running()
VOCAB = 61
GPT2 = {"positions.kind": "learned", "positions.max_length": 409, "model.activation": "gelu-tanh"}
LLAMA = {
    "positions.kind": "rotary",
    "model.norm": "pre-rms",
    "model.activation": "swiglu",
    "model.d_ff": 47,
    "model.bias": False,
    "model.n_heads": 4,
    "model.kv_heads": 2,
    "model.tied": "none",
}
PAIRS = {
    "positions.kind": "rotary",
    "model.bigrams": 37,
    "model.scale_embedding": True,
}  # as training makes it
SHAPES = {
    "gpt2": GPT2,
    "llama": LLAMA,
    "pairs": PAIRS,
    "pairs and places": {**GPT2, "model.bigrams": 4099},
    "post": {"model.norm": "post", "model.activation": "geglu", "model.scale_embedding": True},
    "prime": {"model.d_model": 33, "model.n_heads": 3, "model.d_ff": 29, "positions.kind": "none"},
}
PROMPTS = [[5, 9, 2, 7], [3], [], [11, 60, 4, 4, 8, 1, 30]]


def decoder(overrides: dict[str, Any]) -> Decoder:
    """A small model whose choices differ."""
    plain = {"task": "language", "model.kind": "decoder", "model.d_model": 32, "model.d_ff": 64}
    plain |= {"model.vocab_size": VOCAB, "model.decoder_layers": 2, "model.dropout": 0.0}
    torch.manual_seed(7)
    model = build(merge(Config(), {**plain, **overrides})).eval()
    assert isinstance(model, Decoder)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model


@torch.inference_mode()
def naive(model: Decoder, ids: list[int]) -> torch.Tensor:
    """The logits after these ids, all of them read anew."""
    return model.project(model(Tokens(torch.tensor([ids])))[0, -1])


def close(found: torch.Tensor, wanted: torch.Tensor) -> None:
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4 * float(wanted.abs().max()))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", PATHS)
def test_fp32_gives_the_logits_of_the_readable_decoder(
    shape: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(path.FORCED, name)
    model = decoder(SHAPES[shape])
    packed = PackedDecoder(model, precision="fp32")
    rows = [list(ids) for ids in PROMPTS]
    state = packed.start(pad_prompts(rows))
    for number in (6, 1, 60, 2, 33):
        logits, state = packed.step(torch.full((len(rows),), number), state)
        for ids, found in zip(rows, logits, strict=True):
            ids.append(number)
            close(found, naive(model, ids))


@pytest.mark.parametrize("precision", ["fp32", "bf16", "int8"])
@pytest.mark.parametrize("shape", ["gpt2", "llama", "pairs"])
def test_prefilled_stepped_batched_and_by_any_threads_the_bits_are_the_same(
    shape: str, precision: str
) -> None:
    model = decoder(SHAPES[shape])
    one = PackedDecoder(model, precision=precision, threads=1)
    wanted = []
    for ids in PROMPTS:
        state = one.start(pad_prompts([[]]))
        for number in [*ids, 17]:
            logits, state = one.step(torch.tensor([number]), state)
        wanted.append(logits[0])
    for threads in (1, 2, 3):
        packed = PackedDecoder(model, precision=precision, threads=threads)
        state = packed.start(pad_prompts(PROMPTS))
        found, _ = packed.step(torch.full((len(PROMPTS),), 17), state)
        assert torch.equal(found, torch.stack(wanted))


OPERATIONS = st.lists(
    st.one_of(
        st.tuples(st.just("step"), st.integers(0, 7), st.integers(0, VOCAB - 1)),
        st.tuples(st.just("select"), st.integers(0, 7), st.lists(st.integers(0, 9), min_size=1, max_size=4)),
    ),
    max_size=9,
)


@settings(max_examples=60, deadline=None)
@given(
    prompts=st.lists(st.lists(st.integers(0, VOCAB - 1), max_size=6), min_size=1, max_size=4), done=OPERATIONS
)
@pytest.mark.parametrize("shape", ["llama", "pairs"])
def test_a_state_is_a_value(shape: str, prompts: list[list[int]], done: list[tuple[str, int, Any]]) -> None:
    """From any state that was ever reached, rows go on as if they had been read alone."""
    model, packed = lawful(shape)
    states: list[tuple[PackedState, list[list[int]]]] = [(packed.start(pad_prompts(prompts)), prompts)]
    for kind, which, what in done:
        state, rows = states[which % len(states)]
        if kind == "select":
            chosen = [row % len(rows) for row in what]
            states.append((state.select(torch.tensor(chosen)), [rows[row] for row in chosen]))
            continue
        ids = [(what + row) % VOCAB for row in range(len(rows))]
        logits, after = packed.step(torch.tensor(ids), state)
        states.append((after, [[*row, number] for row, number in zip(rows, ids, strict=True)]))
        for row, found in zip(states[-1][1], logits, strict=True):
            close(found, naive(model, row))


@functools.cache
def lawful(shape: str) -> tuple[Decoder, PackedDecoder]:
    """One model for all examples."""
    model = decoder(SHAPES[shape])
    return model, PackedDecoder(model, precision="fp32", threads=2)


@pytest.mark.parametrize("pairs", [0, 37])
def test_a_past_grows_and_a_long_prompt_goes_in_passes(pairs: int) -> None:
    """Past the room that a row begins with, and past the tokens that are read together."""
    model = decoder({**GPT2, "positions.max_length": 1300, "model.bigrams": pairs})
    packed = PackedDecoder(model, precision="fp32", threads=2)
    ids = torch.randint(0, VOCAB, (1201,), generator=torch.Generator().manual_seed(1)).tolist()
    stepped = packed.start(pad_prompts([ids[:3]]))
    for number in ids[3:401]:
        logits, stepped = packed.step(torch.tensor([number]), stepped)
    close(logits[0], naive(model, ids[:401]))
    both = packed.start(pad_prompts([ids[:-1], ids[:400]]))
    found, _ = packed.step(torch.tensor([ids[-1], ids[400]]), both)
    close(found[0], naive(model, ids))
    assert torch.equal(found[1], logits[0])


def test_threads_may_go_on_from_one_state_at_the_same_time() -> None:
    packed = PackedDecoder(decoder(GPT2), precision="int8", threads=2)
    state = packed.start(pad_prompts(PROMPTS))
    wanted = {number: write_on(packed, state, number) for number in range(4)}
    found: dict[int, list[torch.Tensor]] = {}
    threads = [
        threading.Thread(target=lambda number=number: found.update({number: write_on(packed, state, number)}))
        for number in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, logits in wanted.items():
        assert all(map(torch.equal, logits, found[number]))


def write_on(packed: PackedDecoder, state: PackedState, number: int) -> list[torch.Tensor]:
    found = []
    for i in range(9):
        logits, state = packed.step(torch.full((len(PROMPTS),), (number + 7 * i) % VOCAB), state)
        found.append(logits)
    return found


def test_int8_and_bf16_are_near() -> None:
    model = decoder(LLAMA)
    exact = naive(model, [*PROMPTS[3], 5])
    for precision, most in (("bf16", 0.03), ("int8", 0.15)):
        packed = PackedDecoder(model, precision=precision)
        logits, _ = packed.step(torch.tensor([5]), packed.start(pad_prompts([PROMPTS[3]])))
        assert 0 < float((logits[0] - exact).norm() / exact.norm()) < most


def test_what_it_does_not_know_and_what_does_not_fit_is_told() -> None:
    model = decoder({**GPT2, "positions.max_length": 7})
    packed = PackedDecoder(model)
    assert packed.precision == "fp32"
    state = packed.start(pad_prompts([[1] * 7]))
    with pytest.raises(DataError, match="a sequence of 8 tokens is longer than the 7 learned positions"):
        packed.step(torch.tensor([1]), state)
    with pytest.raises(DataError, match="a sequence of 8 tokens"):
        packed.start(pad_prompts([[1] * 8]))
    with pytest.raises(ModelError, match=f"outside the vocabulary of {VOCAB} tokens"):
        packed.step(torch.tensor([VOCAB]), packed.start(pad_prompts([[]])))
    with pytest.raises(UsageError, match=r"precision \(fp8\)"):
        PackedDecoder(model, precision="fp8")
    assert "Alibi positions" in str(refusal(decoder({"positions.kind": "alibi"}), ALONE))
    with pytest.raises(UsageError, match="the model kind Decoder"):
        Engine(model)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="the score Own"):
        PackedDecoder(with_own_score(decoder(GPT2)))
    model = decoder(PAIRS)
    model.bigrams = type("Own", (Bigrams,), {})(37, 32)  # another hash, for all that the engine knows
    with pytest.raises(UsageError, match="the table of neighbours Own"):
        PackedDecoder(model)


def with_own_score(model: Decoder) -> Decoder:
    """Its score is derived from one that the engine knows, and is another."""

    class Own(type(model.decoder[0].attention.score)):  # type: ignore[misc]
        def factors(self, q: torch.Tensor, k: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return q.abs(), k

    model.decoder[0].attention.score = Own()  # type: ignore[union-attr]
    return model


def test_between_the_engines_steps_torch_has_one_thread_and_afterwards_its_own_again() -> None:
    def steps() -> Generator[tuple[int, object], object, None]:
        taken: object = None
        for _ in range(2):
            taken = yield torch.get_num_threads(), taken

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        found = undivided(steps())
        assert next(found) == (1, None)
        assert torch.get_num_threads() == 2
        assert found.send("sent") == (1, "sent")
        assert list(found) == []
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
