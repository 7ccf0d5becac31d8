"""Spoken digits for `speech.py`: recordings by speaker, joined to longer ones, said by a synthetic voice."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

RATE = 8000  # of joined digits
WORDS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
Rows = list[tuple[Path, str]]


def recordings(folder: Path) -> list[tuple[Path, str, str, int]]:
    """Path, digit as a word, speaker and number of every `{digit}_{speaker}_{index}` in a folder."""
    found = []
    for path in sorted((folder / "recordings").iterdir()):
        digit, speaker, index = path.stem.split("_")
        found.append((path, WORDS[int(digit)], speaker, int(index)))
    return found


def held_out(every: Sequence[Any]) -> set[str]:
    """Every fourth speaker."""
    return set(sorted({speaker for _, _, speaker, _ in every})[::4])


def join(every: Sequence[Any], count: int, place: Path, seed: int) -> Rows:
    """`count` recordings of 1 to 8 digits of one speaker, with pauses and noise."""
    import soundfile

    from regard.audio.sound import read_sound

    random = np.random.default_rng(seed)
    place.mkdir(parents=True, exist_ok=True)
    groups: dict[str, list[Any]] = {}
    for each in every:
        groups.setdefault(each[2], []).append(each)
    names, found = sorted(groups), []
    for number in range(count):
        group = groups[names[int(random.integers(len(names)))]]
        chosen = [group[int(place_)] for place_ in random.integers(len(group), size=random.integers(1, 9))]
        samples = in_a_row([read_sound(path, RATE) for path, *_ in chosen], random)
        path = place / f"{number}.flac"
        soundfile.write(path, np.clip(samples, -1, 1), RATE)
        found.append((path, " ".join(word for _, word, _, _ in chosen)))
    return found


def in_a_row(sounds: Iterable[Any], random: np.random.Generator) -> Any:
    """Sounds one after the other, with pauses before, between and after them, and noise over all."""
    parts = [np.zeros(int(random.integers(400, 2400)), np.float32)]
    for sound in sounds:
        parts += [sound, np.zeros(int(random.integers(400, 3200)), np.float32)]
    samples = np.concatenate(parts)
    loud = float(np.sqrt(np.mean(samples**2))) * 10 ** (-random.uniform(10, 30) / 20)
    return samples + random.normal(size=len(samples)).astype(np.float32) * loud


def spoken_by(voice: Path, place: Path, count: int) -> tuple[Rows, Rows]:
    """`count` recordings of single digits that a voice of piper says, and as many of 1 to 8 joined."""
    import soundfile
    from piper import PiperVoice, SynthesisConfig

    from regard.audio.resample import resampled

    speaker, random = PiperVoice.load(str(voice)), np.random.default_rng(3)
    place.mkdir(parents=True, exist_ok=True)

    def say(word: str) -> Any:
        how = SynthesisConfig(length_scale=float(random.uniform(0.8, 1.3)))
        parts = (chunk.audio_float_array for chunk in speaker.synthesize(f"{word}.", how))
        return np.concatenate(list(resampled(parts, speaker.config.sample_rate, RATE)))

    rows: tuple[Rows, Rows] = ([], [])
    for kind, most in enumerate((1, 8)):
        for number in range(count):
            words = [WORDS[int(n)] for n in random.integers(10, size=random.integers(1, most + 1))]
            path = place / f"{most}-{number}.flac"
            soundfile.write(path, np.clip(in_a_row(map(say, words), random), -1, 1), RATE)
            rows[kind].append((path, " ".join(words)))
    return rows
