"""Telephone calls made on the spot: keys as two tones each (DTMF, ITU-T Q.23), with pauses, hum and noise.

Recordings that every machine has, for `regard demo --task speech` and for tests. A call is a function of its
number, so the same numbers give the same calls.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from regard.audio.resample import Samples
from regard.audio.sound import require_soundfile

RATE = 8000
_LOW, _HIGH = (697, 770, 852, 941), (1209, 1336, 1477, 1633)
_PAD = ("123A", "456B", "789C", "*0#D")
KEYS = {
    key: (low, high)
    for low, row in zip(_LOW, _PAD, strict=True)
    for high, key in zip(_HIGH, row, strict=True)
}
METADATA = "metadata.tsv"
PITCH = {"speech.speed": 0.0, "speech.throat": 0.0}  # to train with: a key at another pitch is another key


class Call(NamedTuple):
    """What was dialled, how it sounds, and when each key was down, in seconds (N, 2)."""

    text: str
    samples: Samples
    times: npt.NDArray[np.float64]


def call(number: int, *, seed: int = 1, most: int = 7, noisy: bool = True) -> Call:
    """One call of up to `most` keys; `noisy`: with hum and noise over it."""
    random = np.random.default_rng([seed, number])
    keys = random.choice(list(KEYS), random.integers(1, most + 1))
    parts: list[npt.NDArray[np.float64]] = [np.zeros(random.integers(400, 2400))]
    times = []
    for key in keys:
        length = int(random.integers(480, 1600))  # 60 to 200 ms
        begin = sum(map(len, parts))
        times.append((begin / RATE, (begin + length) / RATE))
        parts += [_tone(str(key), length, random), np.zeros(random.integers(400, 2400))]
    samples = np.concatenate(parts) * random.uniform(0.1, 0.4)
    if noisy:
        samples += _hum(len(samples), random)
        samples += random.normal(size=len(samples)) * 10 ** random.uniform(-3, -1.3)
    return Call(" ".join(keys), np.clip(samples, -1, 1).astype(np.float32), np.array(times))


def _tone(key: str, length: int, random: np.random.Generator) -> npt.NDArray[np.float64]:
    """Both tones of a key, a little off and not equally loud, softened at the ends."""
    time = np.arange(length) / RATE
    low, high = (hertz * random.uniform(0.985, 1.015) for hertz in KEYS[key])
    twist = 10 ** (random.uniform(-4, 4) / 20)
    both = np.sin(2 * np.pi * low * time + random.uniform(0, 6)) + twist * np.sin(2 * np.pi * high * time)
    edge = np.minimum(1, np.minimum(np.arange(length), np.arange(length)[::-1]) / 40)
    return np.asarray(both * edge / 2)


def _hum(length: int, random: np.random.Generator) -> npt.NDArray[np.float64]:
    """The mains and some of its harmonics."""
    time, base = np.arange(length) / RATE, random.choice([50, 60])
    loud = 10 ** random.uniform(-3, -1)
    waves = (np.sin(2 * np.pi * base * n * time + random.uniform(0, 6)) / n for n in range(1, 9))
    return np.asarray(loud * sum(waves))


def calls(first: int, count: int, *, seed: int = 1) -> Iterator[Call]:
    """Calls by their numbers."""
    return (call(number, seed=seed) for number in range(first, first + count))


def write_calls(folder: Path, first: int, count: int, *, seed: int = 1) -> Path:
    """Recordings of calls and a TSV of what was dialled; the TSV."""
    soundfile = require_soundfile()
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["file\ttext\n"]
    for number, each in enumerate(calls(first, count, seed=seed), first):
        soundfile.write(folder / f"{number}.wav", each.samples, RATE)
        lines.append(f"{number}.wav\t{each.text}\n")
    (folder / METADATA).write_text("".join(lines), encoding="utf-8")
    return folder / METADATA
