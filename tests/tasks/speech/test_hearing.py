"""Long recordings: pieces give the memory of the whole, and cuts lose nothing that is said."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from listeners import random_listener

from regard.audio.frames import framing_of
from regard.data.inputs import Frames
from regard.tasks.speech.hearing import Heard, Hearing


def noise(seconds: float) -> np.ndarray:
    return (np.random.default_rng(5).normal(size=round(8000 * seconds)) * 0.1).astype(np.float32)


@pytest.mark.parametrize("piece", [1, 7, 300])
def test_pieces_are_the_whole(piece: int) -> None:
    listener = random_listener()
    samples = noise(1.7)
    hearing = Hearing(listener.model, listener.how, 0)
    with torch.inference_mode():
        pieces = list(hearing.hear(np.split(samples, [100, 5000]), piece))
        frames = framing_of(listener.how).frames(torch.from_numpy(samples)[None])
        wanted = listener.model.encode(Frames(frames))[0][0]
    assert [each.start for each in pieces] == np.cumsum(
        [0, *(len(each.memory) for each in pieces)][:-1]
    ).tolist()
    torch.testing.assert_close(torch.cat([each.memory for each in pieces]), wanted, atol=1e-4, rtol=1e-4)


def test_a_model_that_hears_all_gets_windows() -> None:
    listener = random_listener(**{"attention.kind": "full", "positions.kind": "sinusoidal"})
    hearing = Hearing(listener.model, listener.how, 0)
    with torch.inference_mode():
        pieces = list(hearing.hear([noise(7.3)]))
    assert len(pieces) > 3
    assert all(len(each.memory) <= 50 for each in pieces)  # 2 s were trained on
    assert sum(len(each.memory) for each in pieces) in range(182, 188)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.integers(1, 60)), min_size=1, max_size=12), st.integers(1, 50))
def test_cuts_lose_nothing_that_is_said(runs: list[tuple[bool, int]], size: int) -> None:
    listener = random_listener()
    hearing = Hearing(listener.model, listener.how, 0)
    quiet = torch.tensor([silent for silent, count in runs for _ in range(count)])
    memory = torch.arange(len(quiet)).float()[:, None]
    pieces = [
        Heard(at, memory[at : at + size], None, quiet[at : at + size]) for at in range(0, len(quiet), size)
    ]
    found = list(hearing.utterances(pieces))
    said = torch.cat([each.memory[:, 0] for each in found]) if found else torch.zeros(0)
    assert set((~quiet).nonzero()[:, 0].tolist()) <= set(said.long().tolist())
    assert len(said.unique()) == len(said)
    assert all(len(each.memory) <= 50 for each in found)
    assert all(each.start == int(each.memory[0, 0]) for each in found)
