"""Recordings made harder while training: other speeds, voices, loudness and noise; some of it blotted out.

    join      several recordings one after the other, with pauses: sentences of those who have words alone
    speed     read faster or slower: tempo and pitch move together, as another voice (Ko et al. 2015)
    noise     white to brown, 5 to 30 dB below the voice
    voice     bands are moved up or down, as a longer or shorter throat would (Jaitly and Hinton 2013), and
              some made louder than others, as another microphone and room would
    blot      SpecAugment: two stripes of bands and two of time are set to the mean (Park et al. 2019)

Everything is drawn from one generator, so that a batch is a function of its place in the run. Before this
file: `sound.py`; called by `regard.tasks.speech.lesson`.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from regard.audio.frames import DECIBEL, NOTHING, hertz_of, mel_of
from regard.config.speech import SpeechConfig

LOUDER = 10.0  # dB that a recording is made louder or softer by, at most
NOISE = (5.0, 30.0)  # dB that noise is softer than the voice
ROUND = (
    2048  # samples that noise is made in multiples of: Fourier transforms of some lengths take much longer
)
PAUSES = 0.05, 0.5  # seconds between recordings that are joined
EDGES = 0.15  # seconds of silence at most before and after
POINTS = 5  # bands at which it is drawn how much louder they are; between them it changes evenly
STRIPES, BANDS, TIMES = 2, 6, 10  # stripes of each kind; a stripe is at most 1 / BANDS, 1 / TIMES of all
BLINK = (
    25  # frames of a stripe of time at most: behind a longer one a short word is gone, and only its text left
)


@dataclass(frozen=True)
class Draw:
    """Random numbers for one batch."""

    source: torch.Generator

    def between(self, low: float, high: float, *shape: int) -> Tensor:
        """Numbers of that shape, spread evenly."""
        return low + (high - low) * torch.rand(shape, generator=self.source)


def harder(samples: Tensor, lengths: Tensor, how: SpeechConfig, draw: Draw) -> tuple[Tensor, Tensor, Tensor]:
    """Samples (B, L) of lengths (B,) made harder, their lengths, and which rows are noise alone."""
    rows = len(samples)
    samples, lengths = at_speed(samples, lengths, draw.between(1 - how.speed, 1 + how.speed, rows))
    samples, lengths = edged(samples, lengths, draw, round(EDGES * how.rate))
    power = samples.square().sum(1) / lengths
    empty = draw.between(0, 1, rows) < how.silence
    noisy = (draw.between(0, 1, rows) < how.noise) | empty
    level = (power * 10 ** (-draw.between(*NOISE, rows) / 10)).sqrt() * noisy
    samples = samples * ~empty[:, None]
    some = noisy.nonzero()[:, 0]
    if len(some):
        samples[some] += coloured(samples[some].shape, draw) * level[some, None]
    samples = samples * 10 ** (draw.between(-LOUDER, LOUDER, rows) / 20)[:, None]
    real = torch.arange(samples.shape[1]) < lengths[:, None]
    return samples * real, lengths, empty


def joined(samples: Tensor, lengths: Tensor, count: int, rate: int, draw: Draw) -> tuple[Tensor, Tensor]:
    """Of rows (B, L) of lengths (B,) each `count` as one with pauses between: (B / count, L'), lengths."""
    pauses = (draw.between(*PAUSES, len(samples)) * rate).long()
    pauses[count - 1 :: count] = 0  # after the last one
    ends = (lengths + pauses).view(-1, count).cumsum(1)  # (B / count, count)
    begins = F.pad(ends[:, :-1], (1, 0)).flatten()
    out = samples.new_zeros(len(ends), int(ends[:, -1].max()))
    for row, (begin, length) in enumerate(zip(begins.tolist(), lengths.tolist(), strict=True)):
        out[row // count, begin : begin + length] = samples[row, :length]
    return out, ends[:, -1]


def at_speed(samples: Tensor, lengths: Tensor, speed: Tensor) -> tuple[Tensor, Tensor]:
    """Rows (B, L) read at their speeds (B,), between samples by Catmull and Rom's cubic."""
    new = (lengths / speed).floor().long().clamp(min=1)
    places = torch.arange(int(new.max())) * speed[:, None]  # (B, L')
    whole = places.floor()
    part, whole = places - whole, whole.long()
    held = F.pad(samples, (1, 3))
    whole = whole.clamp(max=samples.shape[1])
    a, b, c, d = (held.gather(1, whole + k) for k in range(4))
    out = b + part / 2 * (c - a + part * (2 * a - 5 * b + 4 * c - d + part * (3 * (b - c) + d - a)))
    return out * (torch.arange(out.shape[1]) < new[:, None]), new


def edged(samples: Tensor, lengths: Tensor, draw: Draw, most: int) -> tuple[Tensor, Tensor]:
    """Rows with some silence before and after."""
    before = (draw.between(0, most, len(samples))).long()
    after = (draw.between(0, most, len(samples))).long()
    new = lengths + before + after
    places = torch.arange(int(new.max())) - before[:, None]
    inside = (places >= 0) & (places < lengths[:, None])
    return samples.gather(1, places.clamp(0, samples.shape[1] - 1)) * inside, new


def coloured(shape: torch.Size, draw: Draw) -> Tensor:
    """Noise (B, L) of power one, each row of its own colour: white to brown."""
    size = -(-shape[1] // ROUND) * ROUND
    white = torch.fft.rfft(torch.randn((shape[0], size), generator=draw.source))
    slope = draw.between(0, 1, shape[0])[:, None]
    curve = torch.pow(torch.arange(1, white.shape[1] + 1), -slope)
    noise: Tensor = torch.fft.irfft(white * curve, size)[:, : shape[1]]
    return noise / noise.square().mean(1, keepdim=True).sqrt().clamp(min=1e-9)


def voiced(frames: Tensor, how: SpeechConfig, draw: Draw) -> Tensor:
    """Frames (B, T, mels) as of other throats and microphones."""
    rows, time, bands = frames.shape
    if how.throat:
        factors = draw.between(1 - how.throat, 1 + how.throat, rows)
        mels = torch.linspace(0, float(mel_of(torch.tensor(how.rate / 2))), bands + 2)
        places = mel_of(hertz_of(mels[1:-1]) * factors[:, None]) / mels[1] - 1  # (B, mels)
        places = places.clamp(0, bands - 1)
        low = places.floor().clamp(max=bands - 2)
        part = (places - low)[:, None, :]
        at = low.long()[:, None, :].expand(rows, time, bands)
        frames = frames.gather(2, at) * (1 - part) + frames.gather(2, at + 1) * part
    if how.colour:
        points = draw.between(-how.colour, how.colour, rows, 1, POINTS)
        curve = F.interpolate(points, bands, mode="linear", align_corners=True)  # (B, 1, mels), dB
        frames = (frames + curve * DECIBEL).clamp(min=NOTHING)
    return frames


def blotted(frames: Tensor, lengths: Tensor, share: float, draw: Draw) -> Tensor:
    """Frames (B, T, mels) of lengths (B,) with stripes at their mean, in a share of the rows."""
    rows, time, bands = frames.shape
    chosen = draw.between(0, 1, rows) < share
    hidden = torch.zeros(rows, time, bands, dtype=torch.bool)
    for _ in range(STRIPES):
        width = (draw.between(0, bands / BANDS, rows)).round()
        first = draw.between(0, 1, rows) * (bands - width)
        hidden |= _stripe(bands, first, width)[:, None, :]
        width = (draw.between(0, 1, rows) * (lengths / TIMES).clamp(max=BLINK)).round()
        first = draw.between(0, 1, rows) * (lengths - width)
        hidden |= _stripe(time, first, width)[:, :, None]
    mean = frames.sum((1, 2)) / (lengths * bands).clamp(min=1)
    return torch.where(hidden & chosen[:, None, None], mean[:, None, None], frames)


def _stripe(size: int, first: Tensor, width: Tensor) -> Tensor:
    """(B, size), True in a stripe of each row."""
    places = torch.arange(size)
    begin = first.floor()[:, None]
    return (places >= begin) & (places < begin + width[:, None])
