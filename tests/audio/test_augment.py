"""Harder recordings: what is drawn is a function of the seed, and each part does what it says."""

import numpy as np
import torch

from regard.audio.augment import (
    BLINK,
    PAUSES,
    STRIPES,
    Draw,
    at_speed,
    blotted,
    coloured,
    edged,
    harder,
    joined,
    voiced,
)
from regard.audio.frames import DECIBEL, Framing
from regard.config.speech import SpeechConfig


def draw(seed: int = 3) -> Draw:
    return Draw(torch.Generator().manual_seed(seed))


def tone(hertz: float, count: int = 4000, rate: int = 8000) -> torch.Tensor:
    return torch.sin(2 * torch.pi * hertz * torch.arange(count) / rate)


def test_the_same_seed_gives_the_same_batch() -> None:
    samples, lengths = torch.randn(3, 2000), torch.tensor([2000, 1500, 700])
    how = SpeechConfig(rate=8000, silence=0.3)
    first, second = (harder(samples, lengths, how, draw()) for _ in range(2))
    for one, other in zip(first, second, strict=True):
        assert torch.equal(one, other)
    assert not torch.equal(harder(samples, lengths, how, draw(4))[0][:, :500], first[0][:, :500])


def test_speed_moves_tempo_and_pitch_together() -> None:
    found, lengths = at_speed(tone(400)[None], torch.tensor([4000]), torch.tensor([1.25]))
    assert lengths.tolist() == [3200]
    assert (found[0] - tone(500, 3200)).abs()[:-4].max() < 0.02


def test_a_row_beside_a_longer_one_is_what_it_is_alone() -> None:
    both = torch.stack([tone(400), torch.nn.functional.pad(tone(300, 2500), (0, 1500))])
    speeds = torch.tensor([0.9, 1.1])
    found, lengths = at_speed(both, torch.tensor([4000, 2500]), speeds)
    alone, length = at_speed(both[1:, :2500], torch.tensor([2500]), speeds[1:])
    assert lengths[1] == length[0]
    torch.testing.assert_close(found[1, : lengths[1]], alone[0])
    assert not found[1, lengths[1] :].any()


def test_edges_are_silent() -> None:
    found, lengths = edged(torch.ones(5, 100), torch.full((5,), 100), draw(), 40)
    assert (found.sum(1) == 100).all()
    assert (lengths >= 100).all()
    assert len(set(lengths.tolist())) > 1


def test_noise_is_of_power_one() -> None:
    noise = coloured(torch.Size([4, 3000]), draw())
    np.testing.assert_allclose(noise.square().mean(1), 1, rtol=1e-4)


def test_silent_rows_hold_noise_and_no_voice() -> None:
    how = SpeechConfig(rate=8000, silence=1.0, speed=0.0)
    found, _, empty = harder(tone(400)[None].repeat(4, 1), torch.full((4,), 4000), how, draw())
    assert empty.all()
    spectrum = torch.fft.rfft(found[:, :4000]).abs().square()
    assert (spectrum[:, 195:205].sum(1) < 0.9 * spectrum.sum(1)).all()


def test_blots_hide_stripes_within_the_row() -> None:
    frames, lengths = torch.randn(6, 50, 24), torch.tensor([50, 40, 30, 50, 20, 10])
    frames *= (torch.arange(50) < lengths[:, None])[:, :, None]
    found = blotted(frames, lengths, 1.0, draw())
    changed = (found != frames).flatten(1).float().mean(1)
    assert (changed > 0).all()
    assert (changed < 0.7).all()
    assert torch.equal(blotted(frames, lengths, 0.0, draw()), frames)


def test_what_is_blotted_out_of_a_long_recording_is_no_longer_than_a_blink() -> None:
    frames, lengths = torch.randn(40, 1000, 24), torch.full((40,), 1000)
    gone = (blotted(frames, lengths, 1.0, draw()) != frames).all(2)  # (B, T)
    assert 0 < int(gone.sum(1).max()) <= STRIPES * BLINK


def test_noise_is_added_to_its_share_of_the_recordings_alone() -> None:
    samples = torch.zeros(200, 999)
    samples[:, 0] = 1
    how = SpeechConfig(rate=8000, speed=0.0, silence=0.0, noise=0.5)
    found, lengths, _ = harder(samples, torch.full((200,), 999), how, draw())
    noisy = (found != 0).sum(1) > 1
    assert 70 < int(noisy.sum()) < 130
    assert bool((found * (torch.arange(found.shape[1]) >= lengths[:, None]) == 0).all())


def test_recordings_are_joined_in_their_order_with_pauses_between() -> None:
    lengths = torch.tensor([7, 3, 11, 5, 2, 13])
    samples = (1 + torch.arange(6.0))[:, None] * (torch.arange(13) < lengths[:, None])
    found, ends = joined(samples, lengths, 3, 100, draw())
    assert found.shape == (2, int(ends.max()))
    for row, (line, end) in enumerate(zip(found, ends.tolist(), strict=True)):
        assert not bool(line[end:].any())
        assert line[0] != 0
        assert line[end - 1] != 0
        values, counts = torch.unique_consecutive(line[:end], return_counts=True)
        assert values.tolist() == [1 + 3 * row, 0, 2 + 3 * row, 0, 3 + 3 * row]
        assert counts[::2].tolist() == lengths[3 * row : 3 * row + 3].tolist()
        assert all(
            round(100 * PAUSES[0]) <= pause <= round(100 * PAUSES[1]) for pause in counts[1::2].tolist()
        )


def heard(hertz: float) -> torch.Tensor:
    """Frames (1, T, mels) of a tone, without those at the edges."""
    return Framing(8000, 512, 64).frames(tone(hertz)[None])[:, 5:-5]


def test_another_throat_moves_a_tone_by_at_most_its_share_and_its_loudness_by_little() -> None:
    how = SpeechConfig(rate=8000, throat=0.2, colour=0.0)
    found = voiced(heard(1500).expand(40, -1, -1), how, draw())
    places = found.mean(1).argmax(1)
    least, most = (int(heard(1500 * factor).mean(1).argmax()) for factor in (1 / 1.2, 1 / 0.8))
    assert int(places.min()) >= least
    assert int(places.max()) <= most
    assert len(places.unique()) > 5
    torch.testing.assert_close(found.amax((1, 2)), heard(1500).amax().expand(40), rtol=0, atol=3 * DECIBEL)


def test_another_microphone_is_one_smooth_curve_for_all_of_a_recording() -> None:
    how = SpeechConfig(rate=8000, throat=0.0, colour=6.0)
    before = torch.rand(5, 30, 64)
    curve = (voiced(before, how, draw()) - before) / DECIBEL  # dB
    torch.testing.assert_close(curve, curve[:, :1].expand_as(curve), rtol=0, atol=1e-3)
    assert 3 < float(curve.abs().max()) <= 6
    assert float(curve.diff(dim=2).abs().max()) < 1  # from band to band
    assert len(curve[:, 0, 0].unique()) == 5


def test_neither_is_drawn_where_neither_is_asked_for() -> None:
    before = torch.rand(2, 30, 64)
    assert torch.equal(voiced(before, SpeechConfig(rate=8000, throat=0.0, colour=0.0), draw()), before)
