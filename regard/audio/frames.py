"""Samples to log-mel frames: what is heard every 10 ms, in bands that are as wide as the ear's.

    power = |STFT|²  of 25 ms under a Hann window, centred on every 10 ms
    mel   = filters power     triangles on Slaney's mel scale, each of area one
    frame = (log10 max(mel, 1e-10) + 4) / 4

This is what Whisper reads (Radford et al. 2022, 2.2), which also lifts all that is 8 below the loudest
(`lifted`). Before this file: `sound.py`; after it: the encoder.
"""

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import torch
from torch import Tensor

from regard.config.speech import SpeechConfig

WINDOW, HOP = 0.025, 0.010  # seconds
FLOOR = 1e-10  # no band is softer
NOTHING = (math.log10(FLOOR) + 4) / 4  # a frame in which nothing sounds
DECIBEL = 1 / 40  # what a frame grows by where it is so much louder
_LINEAR, _KNEE = 200 / 3, 1000.0  # Hz a mel below the knee, and where it is
_STEP = math.log(6.4) / 27  # a mel above it


def mel_of(hertz: Tensor) -> Tensor:
    """Slaney's scale: linear below 1 kHz, logarithmic above."""
    bent = _KNEE / _LINEAR + (hertz.clamp(min=_KNEE) / _KNEE).log() / _STEP
    return torch.where(hertz < _KNEE, hertz / _LINEAR, bent)


def hertz_of(mel: Tensor) -> Tensor:
    """The inverse of `mel_of`."""
    knee = _KNEE / _LINEAR
    return torch.where(mel < knee, mel * _LINEAR, _KNEE * ((mel.clamp(min=knee) - knee) * _STEP).exp())


@lru_cache(maxsize=8)
def mel_filters(rate: int, fft: int, mels: int) -> Tensor:
    """The triangles (fft / 2 + 1, mels) over the frequencies of an FFT, from 0 to half the rate."""
    heard = torch.linspace(0, rate / 2, fft // 2 + 1, dtype=torch.float64)[:, None]
    ends = mel_of(torch.tensor([0.0, rate / 2], dtype=torch.float64))
    edges = hertz_of(torch.linspace(float(ends[0]), float(ends[1]), mels + 2, dtype=torch.float64))
    low, middle, high = edges[:-2], edges[1:-1], edges[2:]
    rising, falling = (heard - low) / (middle - low), (high - heard) / (high - middle)
    triangles = torch.minimum(rising, falling).clamp(min=0)
    return (triangles * 2 / (high - low)).float()


@dataclass(frozen=True)
class Framing:
    """How samples become frames; `reflect`: what lies before the first sample is what comes after it."""

    rate: int = 16000
    fft: int = 512
    mels: int = 64
    reflect: bool = False

    @cached_property
    def hop(self) -> int:
        """Samples from frame to frame."""
        return round(self.rate * HOP)

    @cached_property
    def window(self) -> int:
        """Samples under the window."""
        return round(self.rate * WINDOW)

    def count(self, samples: int) -> int:
        """Frames of so many samples."""
        return samples // self.hop

    def frames(self, samples: Tensor) -> Tensor:
        """Samples (B, L) -> frames (B, L / hop, mels)."""
        mode = "reflect" if self.reflect and samples.shape[1] > self.fft // 2 else "constant"
        around = torch.nn.functional.pad(samples[:, None], (self.fft // 2, self.fft // 2), mode=mode)[:, 0]
        return self.inside(around)[:, : self.count(samples.shape[1])]

    def inside(self, samples: Tensor) -> Tensor:
        """Frames of samples (B, L) that reach half an FFT beyond the first and the last frame."""
        spectrum = torch.stft(
            samples,
            self.fft,
            self.hop,
            self.window,
            torch.hann_window(self.window, device=samples.device),
            center=False,
            return_complex=True,
        )  # (B, fft / 2 + 1, T)
        power = spectrum.real.square() + spectrum.imag.square()
        filters = mel_filters(self.rate, self.fft, self.mels).to(samples.device)
        mel = power.transpose(1, 2) @ filters
        return (mel.clamp(min=FLOOR).log10() + 4) / 4


def framing_of(how: SpeechConfig) -> Framing:
    """How a model hears."""
    return Framing(how.rate, how.fft, how.mels, how.features == "whisper")


def lifted(frames: Tensor) -> Tensor:
    """What lies more than 8 (powers of ten) below the loudest of each row is lifted to there."""
    return torch.maximum(frames, frames.amax((1, 2), keepdim=True) - 2)


class FrameStream:
    """Frames as samples come; what `Framing.frames` would give for all of them."""

    def __init__(self, framing: Framing) -> None:
        self.framing = framing
        self.held = torch.zeros(framing.fft // 2)  # samples from half an FFT before the next frame on
        self.read = self.made = 0

    def push(self, samples: Tensor) -> Tensor:
        """The frames (T, mels) that these samples (L,) complete."""
        self.held = torch.cat([self.held, samples])
        self.read += len(samples)
        return self._make((len(self.held) - self.framing.fft) // self.framing.hop + 1)

    def flush(self) -> Tensor:
        """The last ones: beyond the end there is silence."""
        self.held = torch.cat([self.held, torch.zeros(self.framing.fft)])
        return self._make(self.framing.count(self.read) - self.made)

    def _make(self, count: int) -> Tensor:
        framing = self.framing
        count = max(0, min(count, framing.count(self.read) - self.made))
        if count == 0:
            return torch.zeros(0, framing.mels)
        whole = self.held[: (count - 1) * framing.hop + framing.fft]
        self.held, self.made = self.held[count * framing.hop :], self.made + count
        return framing.inside(whole[None])[0]
