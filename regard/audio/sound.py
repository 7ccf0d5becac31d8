"""Recordings to samples: one channel at one rate, block by block, whatever the file was.

soundfile (libsndfile) reads WAV, FLAC, OGG and MP3 of any depth, rate and number of channels; channels are
averaged, the rate is changed by `resample.py`. What is no sound is refused in a line. After this file:
`frames.py`.
"""

import math
import os
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from regard.audio.resample import Samples, resampled
from regard.errors import DataError, UsageError, shown

BLOCK = 4.0  # seconds that are read at a time
NUMBERS = 1 << 21  # of all channels that are read at a time, at most
RATES = (1000, 768_000)  # Hz that a header may say
LOUDEST = 1e4  # times full scale; no recording is louder, so its numbers are none
SHORTEST = 0.02  # seconds; two frames
NOTICED = 0.1  # seconds; what an MP3 lacks at its end is less
ENDLESS = 2**31 - 2**16  # bytes that a header speaks of whose writer did not know the end: nothing is lost
CUT = re.compile(
    r"^\s*(?:data|SSND|Data Size)\s*: (\d+) \(should be (\d+)\)", re.MULTILINE
)  # libsndfile's log
ENDINGS = (".wav", ".flac", ".ogg", ".oga", ".opus", ".mp3", ".aiff", ".aif", ".au")


def require_soundfile() -> Any:
    """The package; refuses where it is missing."""
    try:
        import soundfile
    except (ImportError, OSError):
        raise UsageError("sound needs the package soundfile; install regard[speech]") from None
    return soundfile


@contextmanager
def _hushed() -> Iterator[None]:
    """Nothing of what libmpg123 says by itself, below Python's stderr, of an MP3 that is not as it should be.

    In the main thread alone: elsewhere, as in a server, others would lose their lines.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    try:
        kept = os.dup(2)
    except OSError:  # stderr is closed
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)


class Recording:
    """A sound file: what its header says, and its samples as they are asked for."""

    def __init__(self, path: Path | BinaryIO, name: str = "") -> None:
        """`path` may be an open file, which `name` names in errors."""
        self.path, self.name = path, name or str(path)
        soundfile = require_soundfile()
        if isinstance(path, Path):
            self._refuse_odd(path)
        try:
            with _hushed():
                self._file = soundfile.SoundFile(path)
        except (soundfile.SoundFileError, TypeError, ValueError) as error:
            raise DataError(f"{self.name} is no sound file that can be read ({_reason(error)})") from None
        self.rate, self.frames = int(self._file.samplerate), int(self._file.frames)
        self._count, self._promised = 0, self.frames
        if (cut := CUT.search(self._file.extra_info)) and int(cut[1]) < ENDLESS:
            self._promised = self.frames * int(cut[1]) // max(1, int(cut[2]))
        if not RATES[0] <= self.rate <= RATES[1]:
            self._file.close()
            raise DataError(
                f"{self.name}: its header says {self.rate:,} Hz; a recording has {RATES[0]:,} to {RATES[1]:,}"
            )

    @staticmethod
    def _refuse_odd(path: Path) -> None:
        if not path.is_file():
            what = "is no file" if path.exists() else "does not exist"
            raise DataError(f"{path} {what}; give a recording")
        if path.stat().st_size == 0:
            raise DataError(f"{path} is empty; give a recording")

    @property
    def seconds(self) -> float:
        """How long it is, if its header tells the truth."""
        return max(0, self.frames) / self.rate

    @property
    def lost(self) -> float:
        """Seconds that its header speaks of and that were not there, once all of it was read."""
        seconds = (self._promised - self._count) / self.rate
        return seconds if seconds > NOTICED else 0.0

    def blocks(self, rate: int) -> Iterator[Samples]:
        """Samples at `rate`, some seconds at a time; the file is closed when they end."""
        return resampled(self._read(), self.rate, rate)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def _read(self) -> Iterator[Samples]:
        soundfile = require_soundfile()
        size = min(math.ceil(BLOCK * self.rate), max(1, NUMBERS // self._file.channels))
        with self._file as file:
            while True:
                try:
                    with _hushed() if file.format == "MP3" else nullcontext():
                        block = file.read(size, dtype="float32", always_2d=True)
                except (soundfile.SoundFileError, RuntimeError) as error:
                    raise DataError(
                        f"{self.name} cannot be read past {self._count / self.rate:.1f} s ({_reason(error)})"
                    ) from None
                if len(block) == 0:
                    break
                self._count += len(block)
                yield self._mono(block, self._count - len(block))
        _refuse_short(self.name, self._count, self.rate)

    def _mono(self, block: Any, before: int) -> Samples:
        wrong = ~(np.abs(block).max(1) < LOUDEST)  # also where it is no number
        if wrong.any():
            place, value = int(wrong.argmax()), block[int(wrong.argmax())]
            raise DataError(
                f"{self.name}: the sample at {(before + place) / self.rate:.3f} s is "
                f"{shown(float(value[np.argmax(~(np.abs(value) < LOUDEST))]))}, which is no sound"
            )
        mono: Samples = block.mean(1, dtype=np.float32)
        return mono


def read_sound(path: Path, rate: int, longest: float = math.inf) -> Samples:
    """All samples of a recording at `rate`; of one longer than `longest` seconds little more than these."""
    recording, held, count = Recording(path), [], 0
    for block in recording.blocks(rate):
        held.append(block)
        count += len(block)
        if count > longest * rate:
            recording.close()
            break
    return np.concatenate(held)


def pcm_blocks(stream: BinaryIO, rate: int, seconds: float = BLOCK) -> Iterator[Samples]:
    """Raw samples (16 bits, little-endian, one channel) of a stream that may have no end, as they come."""
    size, left, count = max(2, 2 * round(rate * seconds)), b"", 0
    read = getattr(stream, "read1", stream.read)
    while data := read(size):
        data = left + data
        whole = len(data) // 2 * 2
        left = data[whole:]
        count += whole // 2
        yield np.frombuffer(data[:whole], "<i2").astype(np.float32) / np.float32(32768)
    if left:
        raise DataError("the raw samples end in the middle of one; they must be 16 bits each")
    _refuse_short("stdin", count, rate)


def _refuse_short(name: str, count: int, rate: int) -> None:
    """Nothing can be heard in less than two frames."""
    if count < SHORTEST * rate:
        told = f"{count:,} sample{'s' if count > 1 else ''}" if count else "no samples"
        raise DataError(f"{name} holds {told}, too few to hear anything")


def _reason(error: Exception) -> str:
    return shown(str(error).strip().rstrip(".").rpartition(": ")[2] or type(error).__name__)
