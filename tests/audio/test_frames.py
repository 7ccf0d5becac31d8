"""Frames: against Whisper's extractor, against kaldi-native-fbank, and as a stream."""

import kaldi_native_fbank
import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from regard.audio.frames import FrameStream, Framing, lifted, mel_filters


def voice(count: int, seed: int = 1) -> np.ndarray:
    return (np.random.default_rng(seed).normal(size=count) * 0.1).astype(np.float32)


def test_frames_are_whispers() -> None:
    from transformers import WhisperFeatureExtractor

    samples = voice(31_000)
    wanted = WhisperFeatureExtractor(chunk_length=3)(samples, sampling_rate=16000, return_tensors="np")
    padded = torch.zeros(1, 48_000)
    padded[0, : len(samples)] = torch.from_numpy(samples)
    found = lifted(Framing(16000, 400, 80, reflect=True).frames(padded))[0]
    np.testing.assert_allclose(found.T, wanted.input_features[0], atol=1e-5)


def test_filters_are_whispers() -> None:
    from transformers import WhisperFeatureExtractor

    np.testing.assert_allclose(mel_filters(16000, 400, 80), WhisperFeatureExtractor().mel_filters, atol=1e-7)


def test_frames_are_those_of_kaldi_native_fbank() -> None:
    options = kaldi_native_fbank.FbankOptions()
    options.frame_opts.samp_freq = 16000
    options.frame_opts.dither = 0
    options.frame_opts.preemph_coeff = 0
    options.frame_opts.remove_dc_offset = False
    options.frame_opts.window_type = "hann"
    options.frame_opts.snip_edges = True
    options.mel_opts.num_bins = 64
    options.mel_opts.low_freq = 0
    options.mel_opts.is_librosa = True
    options.use_log_fbank = False
    computer = kaldi_native_fbank.OnlineFbank(options)
    samples = voice(8000)
    computer.accept_waveform(16000, samples.tolist())
    computer.input_finished()
    wanted = np.stack([computer.get_frame(i) for i in range(computer.num_frames_ready)])
    # Theirs lie under the first samples of a spectrum, ours in its middle: the power is the same.
    first = (512 - 400) // 2
    found = Framing(16000, 512, 64).inside(torch.from_numpy(np.pad(samples, (first, first)))[None])[0]
    power = 10 ** (found.numpy() * 4 - 4)
    assert len(power) == len(wanted)
    np.testing.assert_allclose(power, wanted, rtol=2e-3, atol=1e-6)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(0, 900), min_size=1, max_size=6))
def test_a_stream_of_samples_gives_the_frames_of_the_whole(sizes: list[int]) -> None:
    framing = Framing(8000, 256, 23)
    samples = torch.from_numpy(voice(sum(sizes), sum(sizes)))
    stream = FrameStream(framing)
    found = torch.cat([*(stream.push(part) for part in samples.split(sizes)), stream.flush()])
    wanted = framing.frames(samples[None])[0] if len(samples) else torch.zeros(0, 23)
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-5)


def test_neighbours_and_padding_change_no_frame() -> None:
    framing = Framing(8000, 512, 17)
    samples = torch.from_numpy(voice(3100))[None]
    padded = torch.nn.functional.pad(samples, (0, 999))
    count = framing.count(3100)
    torch.testing.assert_close(framing.frames(padded)[:, :count], framing.frames(samples))
