"""A recording of any length through the encoder, piece by piece, and the utterances in it.

    samples -> frames -> memory       in linear time; with truncated attention what the whole would give
    memory  -> utterances             cut where nothing is said, or at the longest that was trained on

A place of memory depends on `reach` places around it, so a piece is encoded with these and no more. A model
that hears all at once (full attention, a recurrence) gets windows, cut where it is quiet. After this file:
`listener.py`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.audio.frames import HOP, NOTHING, FrameStream, framing_of, lifted
from regard.audio.resample import Samples
from regard.config.speech import SpeechConfig
from regard.data.inputs import Frames

PIECE = 256  # places that are encoded at a time, where nobody waits for them
PAUSE, MARGIN = 1.0, 0.4  # seconds: a pause that ends an utterance, and what of it belongs to either side
QUIET = 0.75  # a place is quiet if its frames are so far below the loudest (30 dB), where there is no CTC


@dataclass(frozen=True)
class Heard:
    """Memory (S, D) of places from `start` on, log p (S, V) of what CTC hears, and where it is quiet (S,)."""

    start: int
    memory: Tensor
    spoken: Tensor | None
    quiet: Tensor


class Hearing:
    """A model that listens to one recording; `blank` is CTC's id of nothing."""

    def __init__(self, model: Any, how: SpeechConfig, blank: int) -> None:
        self.model, self.how, self.blank = model, how, blank
        self.framing, self.stride = framing_of(how), model.stride
        self.loudest, self.sounded = -9.0, False

    def hear(self, blocks: Iterable[Samples], piece: int = PIECE) -> Iterator[Heard]:
        """Blocks of samples as memory, piece by piece, in order."""
        frames = self._frames(blocks)
        reach = self.model.reach()
        return self._windows(frames) if reach is None else self._flow(frames, reach, piece)

    def _frames(self, blocks: Iterable[Samples]) -> Iterator[tuple[Tensor, bool]]:
        """Frames (T, mels) as they come, and whether these are the last."""
        stream = FrameStream(self.framing)
        for block in blocks:
            yield stream.push(torch.from_numpy(np.ascontiguousarray(block))), False
        yield stream.flush(), True

    def _flow(
        self, frames: Iterator[tuple[Tensor, bool]], reach: tuple[int, int], piece: int
    ) -> Iterator[Heard]:
        """Pieces with what they depend on: the memory that the whole would have."""
        held, first, done = (
            torch.zeros(0, self.framing.mels),
            0,
            0,
        )  # frames from place `first` on; places done
        for new, last in frames:
            held = torch.cat([held, new])
            while True:
                known = first * self.stride + len(held)  # frames so far
                ready = (known - 1 - self.model.front.reach) // self.stride + 1 - reach[1]
                end = -(-known // self.stride) if last else ready
                until = min(done + piece, end)
                if until <= done or (until < done + piece and not last):
                    break
                need = min(len(held), (until + reach[1] + 2 - first) * self.stride)
                memory = self._encode(held[:need])[done - first : until - first]
                yield self.heard(done, memory, held[(done - first) * self.stride :])
                done = until
                keep = max(0, done - reach[0] - 1)
                held, first = held[(keep - first) * self.stride :], keep

    def _windows(self, frames: Iterator[tuple[Tensor, bool]]) -> Iterator[Heard]:
        """Windows of the longest that was trained on, cut where it is quietest."""
        seconds = self.how.heard or self.how.longest
        most = self.stride * max(8, int(seconds / HOP / self.stride))
        if self.model.most_heard is not None:
            most = min(most, self.stride * self.model.most_heard)
        held, done = torch.zeros(0, self.framing.mels), 0
        for new, last in frames:
            held = torch.cat([held, new])
            while len(held) > most or (last and len(held)):
                size = len(held)
                if size > most:
                    half = most // 2
                    level = held[half:most].mean(1)
                    size = (half + int(level.argmin())) // self.stride * self.stride
                yield self.heard(done, self._encode(held[:size]), held[:size])
                held, done = held[size:], done + -(-size // self.stride)

    def _encode(self, frames: Tensor) -> Tensor:
        device = next(self.model.parameters()).device
        values = lifted(frames[None]) if self.how.features == "whisper" else frames[None]
        memory: Tensor = self.model.encode(Frames(values.to(device)))[0][0]
        return memory

    def heard(self, start: int, memory: Tensor, frames: Tensor) -> Heard:
        """Memory (S, D) and the frames (T, mels) that it was made of, with where it is quiet."""
        spoken = self.model.spoken(memory)
        self.sounded = self.sounded or float(frames.max()) > NOTHING + 1e-4
        if not self.sounded:  # whatever a model makes of samples that are all zero
            still = torch.ones(
                len(memory), dtype=torch.bool, device=(frames if spoken is None else spoken).device
            )
            return Heard(start, memory, spoken, still)
        if spoken is not None:
            return Heard(start, memory, spoken, spoken[:, self.blank] > np.log(0.5))
        level = frames.mean(1)[: len(memory) * self.stride]
        level = torch.nn.functional.pad(level, (0, len(memory) * self.stride - len(level)), value=-9.0)
        level = level.view(-1, self.stride).amax(1)
        self.loudest = max(self.loudest, float(level.max()))
        return Heard(start, memory, None, level < self.loudest - QUIET)

    def utterances(self, pieces: Iterable[Heard]) -> Iterator[Heard]:
        """What is said, cut at pauses; a recording no longer than what was trained on stays whole."""
        place = self.stride * HOP
        most = max(8, int((self.how.heard or self.how.longest) / place))
        pause, margin = max(2, round(PAUSE / place)), max(1, round(MARGIN / place))
        held: Heard | None = None
        for new in pieces:
            held = new if held is None else _joined(held, new)
            while len(held.quiet) > most:
                cut = _cut(held.quiet, most, pause, margin)
                if bool((~held.quiet[:cut]).any()):
                    yield _part(held, 0, cut)
                held = _part(held, cut, len(held.quiet))
        if held is not None and len(held.quiet) and bool((~held.quiet).any()):
            yield held


def _cut(quiet: Tensor, most: int, pause: int, margin: int) -> int:
    """Where an utterance ends within the first `most` places: in a pause, or where it is quiet."""
    quiet = quiet[:most]
    loud = (~quiet).nonzero()[:, 0]
    if len(loud) == 0:
        return max(1, most - margin)
    if int(loud[0]) > 2 * margin:
        return int(loud[0]) - margin  # the silence before it
    gaps = torch.diff(loud, append=torch.tensor([most]))
    wide = (gaps > pause).nonzero()[:, 0]
    if len(wide):
        return int(loud[wide[0]]) + 1 + margin
    best = int(gaps[len(gaps) // 2 :].argmax()) + len(gaps) // 2
    return max(1, int(loud[best]) + 1 + int(gaps[best]) // 2)


def _joined(one: Heard, other: Heard) -> Heard:
    spoken = None if one.spoken is None or other.spoken is None else torch.cat([one.spoken, other.spoken])
    return Heard(
        one.start, torch.cat([one.memory, other.memory]), spoken, torch.cat([one.quiet, other.quiet])
    )


def _part(whole: Heard, begin: int, end: int) -> Heard:
    spoken = None if whole.spoken is None else whole.spoken[begin:end]
    return Heard(whole.start + begin, whole.memory[begin:end], spoken, whole.quiet[begin:end])
