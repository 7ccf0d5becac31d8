"""A model of speech in the engine: what the readable one hears and writes, and what it cannot run."""

import numpy as np
import pytest
import torch
from listeners import random_listener

from regard.attention.record import record
from regard.data.inputs import Frames
from regard.engine.listener import PackedListener
from regard.engine.path import available
from regard.errors import UsageError
from regard.models.speech import Speech

WHISPER = {
    "attention.kind": "full",
    "attention.ahead": -1,
    "positions.kind": "learned",
    "positions.max_length": 89,
    "model.norm": "pre",
    "model.activation": "gelu",
    "speech.front": "frames",
    "speech.subsampling": 2,
    "speech.ctc": 0.0,
    "model.n_heads": 2,
    "model.d_model": 22,
    "model.decoder_layers": 3,
}
PROMPT, REST = [1, 7, 5], [9, 6, 6, 11, 4]

pytestmark = pytest.mark.skipif(available() is not None, reason="no native engine here")


@pytest.fixture(scope="module")
def model() -> Speech:
    found: Speech = random_listener(**WHISPER).model
    with torch.no_grad():  # texts of random models are all alike; so are int8's faults
        for parameter in found.parameters():
            parameter.mul_(2.0)
    return found


@pytest.fixture(scope="module", params=[127, 607])  # places look one by one, or together
def inputs(request: pytest.FixtureRequest) -> Frames:
    size = 1, request.param, 13
    return Frames(torch.from_numpy(np.random.default_rng(3).normal(size=size).astype(np.float32)))


@pytest.fixture(scope="module")
def wanted(model: Speech, inputs: Frames) -> tuple[torch.Tensor, list[torch.Tensor]]:
    with torch.inference_mode():
        memory = model.encode(inputs)[0]
        logits, state = model.read(torch.tensor([PROMPT]), model.begin(memory))
        found = [logits[0]]
        for token in REST:
            logits, state = model.read(torch.tensor([[token]]), state)
            found.append(logits[0])
    return memory[0], found


@pytest.mark.parametrize("threads", [1, 2])
def test_it_hears_and_writes_what_the_readable_one_does(
    model: Speech, inputs: Frames, wanted: tuple[torch.Tensor, list[torch.Tensor]], threads: int
) -> None:
    packed = PackedListener(model, precision="fp32", threads=threads)
    heard = packed.hear(inputs)
    torch.testing.assert_close(heard.states, wanted[0], atol=1e-3, rtol=1e-3)
    logits, state = packed.read(PROMPT, packed.begin(heard))
    for token, each in zip([*REST, 0], wanted[1], strict=True):
        torch.testing.assert_close(logits, each, atol=1e-3, rtol=1e-3)
        logits, state = packed.read([token], state)


@pytest.mark.parametrize("threads", [1, 2])
def test_where_it_listened_is_what_the_readable_ones_tape_holds(
    model: Speech, inputs: Frames, threads: int
) -> None:
    packed = PackedListener(model, precision="fp32", threads=threads)
    tapes: list[torch.Tensor] = []
    _, state = packed.read(PROMPT, packed.begin(packed.hear(inputs)), tapes)
    packed.read([REST[0]], state, tapes)
    with torch.inference_mode(), record() as tape:
        _, other = model.read(torch.tensor([PROMPT]), model.start(inputs))
        model.read(torch.tensor([REST[:1]]), other)
    sites = [site.name for site in tape.sites() if site.kind == "cross"]
    for step, found in enumerate(tapes):
        wanted = torch.stack([tape[name][step][0, :, -1] for name in sites])  # (N, H, S)
        torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-3)
        assert found.std() > 1e-4  # else any weights would do


def test_threads_change_no_bit(model: Speech, inputs: Frames) -> None:
    for precision in ("fp32", "int8"):
        one, two = (PackedListener(model, precision=precision, threads=n).hear(inputs) for n in (1, 2))
        assert torch.equal(one.states, two.states)
        assert torch.equal(one.memory, two.memory)


def test_states_are_values(model: Speech, inputs: Frames) -> None:
    packed = PackedListener(model, precision="fp32")
    one, other = packed.hear(inputs), packed.hear(Frames(inputs.values[:, :50] * 0.5))
    _, state = packed.read(PROMPT, packed.begin(one))
    first, _ = packed.read([9], state)
    packed.read([4], state)
    packed.read(PROMPT, packed.begin(other))
    again, _ = packed.read([9], state)
    assert torch.equal(first, again)


def test_int8_is_near(model: Speech, inputs: Frames, wanted: tuple[torch.Tensor, list[torch.Tensor]]) -> None:
    packed = PackedListener(model, precision="int8")
    heard = packed.hear(inputs)
    # A path that sums bytes in pairs has six bits of them: 0.15 where eight give 0.08; chance would give 1.4.
    assert (heard.states - wanted[0]).norm() / wanted[0].norm() < 0.25
    logits, _ = packed.read(PROMPT, packed.begin(heard))
    apart = (logits - wanted[1][0]).norm() / wanted[1][0].norm()
    assert apart < 0.4


@pytest.mark.parametrize(
    "changes",
    [
        {"attention.kind": "local", "attention.ahead": 2},
        {"positions.kind": "sinusoidal"},
        {"speech.encoder": "conv"},
    ],
)
def test_what_it_cannot_run(changes: dict[str, object]) -> None:
    with pytest.raises(UsageError, match="the native engine cannot run"):
        PackedListener(random_listener(**(WHISPER | changes)).model)
