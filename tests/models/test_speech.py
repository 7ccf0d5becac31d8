"""The model of speech: what a place hears, that padding changes nothing, and that steps are the whole."""

import pytest
import torch

from regard.config import Config, merge
from regard.data.inputs import Frames, pad_frames
from regard.models import build
from regard.tasks.speech import TASK

SHAPE = {
    "model.d_model": 12,
    "model.n_heads": 3,
    "model.d_ff": 20,
    "model.encoder_layers": 2,
    "model.decoder_layers": 2,
    "model.dropout": 0.0,
    "model.vocab_size": 31,
    "attention.window": 3,
    "attention.ahead": 2,
    "speech.mels": 11,
    "speech.channels": 3,
    "speech.rate": 8000,
}
KINDS = [
    {},
    {"speech.front": "frames", "speech.subsampling": 2},
    {"speech.encoder": "conv", "model.kernel": 3},
    {"speech.encoder": "recurrent"},
    {"attention.kind": "full", "positions.kind": "sinusoidal", "speech.subsampling": 8},
]


def made(**changes: object) -> torch.nn.Module:
    torch.manual_seed(3)
    return build(merge(Config(), TASK.defaults() | SHAPE | changes)).eval()


@pytest.mark.parametrize("changes", KINDS)
def test_padding_and_neighbours_change_nothing(changes: dict[str, object]) -> None:
    model = made(**changes)
    rows = [torch.randn(length, 11) for length in (53, 29, 1)]
    memory, real = model.encode(pad_frames(rows))
    logp = model.spoken(memory)
    for number, row in enumerate(rows):
        alone, _ = model.encode(Frames(row[None]))
        count = alone.shape[1]
        assert int(real[number].sum()) == count
        torch.testing.assert_close(memory[number, :count], alone[0], atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(logp[number, :count], model.spoken(alone)[0], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("changes", KINDS[:3])
def test_it_hears_as_far_ahead_as_it_says_and_no_further(changes: dict[str, object]) -> None:
    model = made(**changes)
    frames = torch.randn(1, 97, 11)
    place = 8
    last = place * model.stride + model.hears_ahead()
    before = model.encode(Frames(frames))[0][0, place]
    for frame, same in ((last + 1, True), (last, False)):
        other = frames.clone()
        other[0, frame:] += 3 * torch.randn(97 - frame, 11)
        after = model.encode(Frames(other))[0][0, place]
        assert torch.allclose(before, after, atol=1e-6) is same


def test_models_that_hear_everything_say_so() -> None:
    assert made(**KINDS[3]).hears_ahead() is None
    assert made(**KINDS[4]).hears_ahead() is None


@pytest.mark.parametrize("changes", KINDS)
def test_steps_are_teacher_forcing(changes: dict[str, object]) -> None:
    model = made(**changes)
    inputs = pad_frames([torch.randn(41, 11), torch.randn(30, 11)])
    ids = torch.randint(4, 31, (2, 5))
    wanted = model.project(model(inputs, ids))
    state = model.start(inputs)
    for place in range(5):
        logits, state = model.step(ids[:, place], state)
        torch.testing.assert_close(logits, wanted[:, place], atol=1e-5, rtol=1e-5)
    logits, _ = model.read(ids, model.start(inputs))
    torch.testing.assert_close(logits, wanted[:, -1], atol=1e-5, rtol=1e-5)


def test_without_ctc_there_is_no_output_for_it() -> None:
    model = made(**{"speech.ctc": 0.0})
    assert model.ctc is None
    assert model.spoken(torch.randn(1, 2, 12)) is None
