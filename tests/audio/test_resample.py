"""Another rate: against a plain sum, against exact tones, and block by block."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.audio.resample import Resampler, resampled


def whole(samples: np.ndarray, old: int, new: int) -> np.ndarray:
    return np.concatenate(list(resampled([samples], old, new)))


def tone(hertz: float, rate: int, seconds: float = 0.5) -> np.ndarray:
    return np.sin(2 * np.pi * hertz * np.arange(round(rate * seconds)) / rate).astype(np.float32)


@pytest.mark.parametrize(("old", "new"), [(8000, 16000), (44100, 16000), (192_000, 16000), (16001, 16000)])
def test_a_tone_stays_that_tone(old: int, new: int) -> None:
    found = whole(tone(440, old), old, new)
    assert len(found) == round(0.5 * new)
    assert np.abs(found - tone(440, new))[200:-200].max() < 1e-3


def test_what_the_new_rate_cannot_hold_is_gone() -> None:
    found = whole(tone(9000, 44100), 44100, 16000)
    assert np.abs(found)[300:-300].max() < 1e-3


def test_the_product_is_the_plain_sum() -> None:
    samples = np.random.default_rng(1).normal(size=997).astype(np.float32)
    resampler = Resampler(11025, 8000)
    found = whole(samples, 11025, 8000)
    around = np.pad(samples, resampler.reach + 1)
    for number in (0, 1, 100, len(found) - 1):
        place, phase = divmod(number * resampler.down, resampler.up)
        old = around[place + 1 : place + 2 + 2 * resampler.reach]
        assert found[number] == pytest.approx(float(old @ resampler.weights[phase]), abs=1e-5)
    resampler.kernel = None  # the other way: gathered
    gathered = np.concatenate([resampler.push(samples), resampler.flush()])
    np.testing.assert_allclose(gathered, found, atol=1e-5)


@settings(max_examples=20, deadline=None)
@given(
    st.lists(st.integers(0, 700), min_size=1, max_size=5),
    st.sampled_from([(8000, 16000), (44100, 16000), (16001, 16000), (48000, 8000)]),
)
def test_block_by_block_is_the_whole(sizes: list[int], rates: tuple[int, int]) -> None:
    samples = np.random.default_rng(sum(sizes)).normal(size=sum(sizes)).astype(np.float32)
    blocks = np.split(samples, np.cumsum(sizes)[:-1])
    found = np.concatenate(list(resampled(blocks, *rates)))
    np.testing.assert_allclose(found, whole(samples, *rates), atol=1e-5)
    assert len(found) == -(-len(samples) * rates[1] // rates[0])
