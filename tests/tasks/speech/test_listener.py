"""A folder that listens: one recording or many, whole or as it comes, and silence."""

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import torch
from listeners import random_listener

import regard
from regard.audio.sound import read_sound
from regard.errors import UsageError
from regard.tasks.speech.listener import Listener


def noise(seconds: float, seed: int = 5) -> np.ndarray:
    return (np.random.default_rng(seed).normal(size=round(8000 * seconds)) * 0.1).astype(np.float32)


@pytest.fixture(scope="module")
def listener(folder: Path) -> Listener:
    found: Listener = regard.load(folder)
    with torch.no_grad():
        found.model.ctc.bias[0] = -9.0  # it hears something everywhere
    return found


def test_neighbours_change_nothing(listener: Listener) -> None:
    sounds = [noise(seconds, seed) for seed, seconds in enumerate((0.7, 1.9, 0.3, 1.1))]
    together = list(listener.transcribe_all(sounds))
    assert [len(segments) for segments in together] == [1, 1, 1, 1]
    for sound, segments in zip(sounds, together, strict=True):
        (alone,) = listener.transcribe(sound)
        assert alone.ids == segments[0].ids
        assert alone.logp == pytest.approx(segments[0].logp, abs=1e-4)


def test_segments_have_times_and_probabilities(listener: Listener) -> None:
    segments = list(listener.transcribe(noise(7.0)))
    assert len(segments) > 2  # 2 s were trained on
    for before, after in pairwise(segments):
        assert before.end <= after.start + 1e-6
    for segment in segments:
        assert 0 <= segment.start < segment.end <= 7.01
        assert segment.logp < 0
        assert 0 <= segment.no_speech <= 1
        assert all(segment.start <= word.start < word.end <= segment.end + 1e-6 for word in segment.words)
        assert all(0 < word.probability <= 1 for word in segment.words)


def test_a_file_is_what_its_samples_are(listener: Listener, calls: Path) -> None:
    path = calls.parent / "3.wav"
    (whole,) = listener.transcribe(str(path))
    (blocks,) = listener.transcribe(np.array_split(read_sound(path, 8000), 5))
    assert whole.ids == blocks.ids


def test_where_nothing_is_said_nothing_is_written() -> None:
    listener = random_listener()
    with torch.no_grad():
        listener.model.ctc.bias[0] = 9.0
    assert list(listener.transcribe(np.zeros(16000, np.float32))) == []
    assert list(listener.transcribe_all([noise(1.0), noise(9.0)])) == [[], []]
    assert list(listener.follow([noise(1.0)])) == []


def test_samples_that_are_all_zero_are_silence_whatever_the_model_hears(listener: Listener) -> None:
    still = np.zeros(8 * 8000, np.float32)
    assert list(listener.transcribe(still)) == []
    assert list(listener.transcribe_all([still[:8000], still])) == [[], []]
    assert list(listener.transcribe(np.concatenate([noise(1.0), still]))) != []


def test_a_stream_says_what_the_whole_says_and_no_later_than_it_promises(listener: Listener) -> None:
    samples = noise(2.0)
    whole = [(piece.text, piece.at) for piece in listener.follow([samples])]
    given = 0

    def blocks() -> "np.ndarray":
        nonlocal given
        for part in np.array_split(samples, 50):
            given += len(part)
            yield part

    late, pieces = [], []
    for piece in listener.follow(blocks()):
        pieces.append((piece.text, piece.at))
        late.append(given / 8000 - piece.at)
    assert pieces == whole
    assert listener.delay is not None
    assert max(late) <= listener.delay + 0.04 + 0.05  # a block, and the window of a frame


def test_what_hears_everything_has_no_stream() -> None:
    with pytest.raises(UsageError, match="hears a bounded time ahead"):
        list(random_listener(**{"attention.kind": "full"}).follow([]))
    with pytest.raises(UsageError, match="has CTC"):
        list(random_listener(**{"speech.ctc": 0.0}).follow([]))


def test_without_ctc_a_loud_neighbour_makes_nobody_quiet() -> None:
    listener = random_listener(**{"speech.ctc": 0.0})
    sounds = [noise(1.0), noise(1.0) * 1e-3]
    together = list(listener.transcribe_all(sounds))
    assert [len(segments) for segments in together] == [1, 1]


def test_without_ctc_quiet_is_what_is_soft() -> None:
    listener = random_listener(**{"speech.ctc": 0.0})
    sound = np.concatenate([noise(1.5), np.zeros(32000, np.float32), noise(1.5)])
    segments = list(listener.transcribe(sound))
    assert len(segments) >= 2
    assert all(segment.no_speech == 0 for segment in segments)
