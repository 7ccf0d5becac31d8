"""Recordings to segments: what was said, when, and how sure the model is.

    sound -> `hearing` (memory, utterances) -> greedy search under a tape -> text and word times -> `Segment`

Several utterances are written at once; what is written of one depends on no other. `follow` gives pieces of
text while the sound still comes, by CTC: nothing of it changes afterwards, and its delay is the look-ahead.
Before this file: `regard.models.folder`; after it: the verb, the server and Python.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import torch

from regard.attention.record import record
from regard.audio.frames import HOP, framing_of, lifted
from regard.audio.resample import Samples, resampled
from regard.audio.sound import Recording
from regard.config import Config
from regard.config.speech import SpeechConfig
from regard.data.inputs import Frames, pad_frames
from regard.decoding.greedy import likeliest
from regard.decoding.joint import listening
from regard.decoding.search import Rules, walk
from regard.engine.engine import left_aside
from regard.engine.weights import HEARD
from regard.errors import DataError, UsageError
from regard.models.folder import Loaded, load_folder
from regard.tasks.itself import ShowsItself
from regard.tasks.speech.hearing import Heard, Hearing
from regard.tasks.speech.timing import Word, words_of
from regard.text.tokenizer import Tokenizer

TOGETHER = 16  # utterances that are written at once
FOLLOWED = 2  # places that are heard at a time while somebody waits

Sound = (
    str | PathLike[str] | Samples | Iterable[Samples]
)  # a file; samples at the model's rate, whole or in blocks


@dataclass(frozen=True)
class Segment:
    """What was said from `start` to `end` seconds."""

    text: str
    start: float
    end: float
    logp: float  # of a token, on average
    no_speech: float  # the probability that nothing was said
    words: Sequence[Word] = field(default=())
    ids: Sequence[int] = ()
    language: str = ""  # its code, where the model knows several
    temperature: float = 0.0  # at which it was written


@dataclass(frozen=True)
class Piece:
    """Text that is certain now, and when it was said."""

    text: str
    at: float


@dataclass(frozen=True)
class Studied:
    """One utterance: frames (T, mels), memory (1, S, D), what the decoder read first, and what it wrote."""

    frames: torch.Tensor
    memory: torch.Tensor
    prompt: Sequence[int]
    ids: Sequence[int]
    text: str


@dataclass
class _Written:
    """What is being written of one utterance."""

    heard: Heard
    ids: list[int] = field(default_factory=list)
    logp: list[float] = field(default_factory=list)
    rows: list[Any] = field(default_factory=list)  # where each token listened: (S,)


class _Readable:
    """Blocks of samples up to the first that cannot be read: what was said before it is told first."""

    def __init__(self, blocks: Iterable[Samples]) -> None:
        self.blocks = blocks
        self.fault: DataError | None = None

    def __iter__(self) -> Iterator[Samples]:
        try:
            yield from self.blocks
        except DataError as error:
            self.fault = error

    def refuse_rest(self) -> None:
        """Once all is told."""
        if self.fault is not None:
            raise self.fault


class Listener(ShowsItself):
    """A model folder that listens."""

    task = "speech"
    prompted = False  # whether it reads what was said before
    model: Any

    def __init__(self, loaded: Loaded) -> None:
        self.model = loaded.model
        self.config: Config = loaded.config
        self.tokenizer: Tokenizer = loaded.tokenizer
        self.how = loaded.config.of(SpeechConfig)
        self.blank, self.framing = self.tokenizer.pad_id, framing_of(self.how)
        self.place: float = self.model.stride * HOP  # seconds

    @property
    def rate(self) -> int:
        """Samples a second that it hears."""
        return self.how.rate

    def transcribe(self, sound: Sound, *, words: bool = True) -> Iterator[Segment]:
        """The segments of a recording, in order, as they are found; with the times of their words."""
        readable = _Readable(self.blocks(sound))
        segments = self._segments(iter(readable), words)
        while True:
            with torch.inference_mode():  # not around `yield`: whoever goes on may be another thread
                segment = next(segments, None)
            if segment is None:
                return readable.refuse_rest()
            yield segment

    def asked(
        self, *, language: str = "", temperature: float = 0.0, prompt: str = "", readable: bool = False
    ) -> "Listener":
        """The same, listening as one request wants; `readable`: not in the engine, whose heads stay on.

        They mean something to Whisper models alone; a prompt, which others cannot read, is refused.
        """
        if prompt.strip() and not self.prompted:
            raise UsageError("a prompt is read by Whisper models alone; this one was trained without any")
        return self

    def transcribe_all(self, sounds: Iterable[Sound], *, together: int = TOGETHER) -> Iterator[list[Segment]]:
        """The segments of each recording; utterances of several are written at once."""
        sounds = iter(sounds)
        while some := list(islice(sounds, together)):
            with torch.inference_mode():
                heard = self._heard(some)
                every = [(number, each) for number, group in enumerate(heard) for each in group]
                found: list[list[Segment]] = [[] for _ in some]
                for at in range(0, len(every), together):
                    part = every[at : at + together]
                    written = self._write([each for _, each in part])
                    for (number, _), segment in zip(part, map(self._segment, written), strict=True):
                        found[number] += [segment] if segment.text else []
            yield from found

    def _heard(self, sounds: Sequence[Sound]) -> list[Iterable[Heard]]:
        """The utterances of each recording; those no longer than what was trained on are encoded at once."""
        found: list[Iterable[Heard]] = []
        short: dict[int, Samples] = {}
        for number, sound in enumerate(sounds):
            blocks, held = self.blocks(sound), [np.zeros(0, np.float32)]
            while (
                sum(map(len, held)) <= self.how.heard * self.rate and (new := next(blocks, None)) is not None
            ):
                held.append(new)
            samples = np.concatenate(held)
            if self.framing.hop <= len(samples) <= self.how.heard * self.rate:
                short[number] = samples
                found.append([])
            else:
                found.append(self._utterances(chain([samples], blocks)))
        for number, each in zip(short, self._encoded(list(short.values())), strict=True):
            found[number] = [each] if bool((~each.quiet).any()) else []
        return found

    def _encoded(self, sounds: Sequence[Samples]) -> list[Heard]:
        """Recordings that are heard as one utterance each, in one batch."""
        if not sounds:
            return []
        frames = [self._frames(each) for each in sounds]
        inputs = pad_frames(frames).to(next(self.model.parameters()).device)
        memory, real = self.model.encode(inputs)
        lengths = [memory.shape[1]] * len(sounds) if real is None else real.sum(1).tolist()
        rows = zip(memory, lengths, frames, strict=True)
        return [
            Hearing(self.model, self.how, self.blank).heard(0, row[:length], each)
            for row, length, each in rows
        ]

    def studied(self, samples: Samples) -> Studied:
        """One utterance as it is heard and written, for whoever looks into it."""
        frames = self._frames(samples)
        memory = self.model.encode(Frames(frames[None].to(next(self.model.parameters()).device)))[0]
        heard = Hearing(self.model, self.how, self.blank).heard(0, memory[0], frames)
        (written,) = self._write([heard])
        ids = written.ids[:-1] if written.ids[-1:] == [self.tokenizer.end_id] else written.ids
        return Studied(
            frames, memory, [self.tokenizer.specials.begin], ids, self.tokenizer.decode(ids).strip()
        )

    def _frames(self, samples: Samples) -> torch.Tensor:
        """Frames (T, mels) of a short recording, as the model is shown them."""
        frames = self.framing.frames(torch.from_numpy(np.ascontiguousarray(samples, np.float32))[None])
        return (lifted(frames) if self.how.features == "whisper" else frames)[0]

    def follow(self, blocks: Iterable[Samples]) -> Iterator[Piece]:
        """Pieces of text while blocks of samples (at the model's rate) come; none is taken back."""
        if self.model.reach() is None or self.model.ctc is None:
            raise UsageError(
                "a stream needs a model that hears a bounded time ahead (attention.kind=local) and has CTC "
                "(speech.ctc); this one hears whole recordings"
            )
        hearing, readable = Hearing(self.model, self.how, self.blank), _Readable(blocks)
        last = self.blank
        with torch.inference_mode():
            for heard in hearing.hear(readable, FOLLOWED):
                assert heard.spoken is not None
                for number, token in enumerate(heard.spoken.argmax(-1).tolist()):
                    if token not in (last, self.blank):
                        text = self.tokenizer.spell([token]).decode("utf-8", "replace")
                        yield Piece(text, (heard.start + number) * self.place)
                    last = token
        readable.refuse_rest()

    @property
    def delay(self) -> float | None:
        """Seconds of sound that must come after a place before it is certain; None: all of it."""
        ahead = self.model.hears_ahead()
        return None if ahead is None else (ahead + FOLLOWED * self.model.stride) * HOP

    def blocks(self, sound: Sound) -> Iterator[Samples]:
        """A recording as blocks of samples at the model's rate."""
        if isinstance(sound, str | PathLike):
            return Recording(Path(sound)).blocks(self.rate)
        if isinstance(sound, np.ndarray):
            return resampled([np.asarray(sound, np.float32)], self.rate, self.rate)
        return iter(sound)

    def _utterances(self, blocks: Iterable[Samples]) -> Iterator[Heard]:
        hearing = Hearing(self.model, self.how, self.blank)
        return hearing.utterances(hearing.hear(blocks))

    def _segments(self, blocks: Iterable[Samples], words: bool) -> Iterator[Segment]:
        utterances = self._utterances(blocks)
        while some := list(islice(utterances, TOGETHER)):
            for written in self._write(some):
                segment = self._segment(written, words)
                if segment.text:
                    yield segment

    def _write(self, utterances: Sequence[Heard]) -> list[_Written]:
        """Greedy search by decoder and CTC over some utterances at once, with where every token listened."""
        model = self.model
        lengths = torch.tensor([len(each.memory) for each in utterances])
        memory = torch.nn.utils.rnn.pad_sequence([each.memory for each in utterances], batch_first=True)
        real = (torch.arange(memory.shape[1]) < lengths[:, None]).to(memory.device)
        rules = Rules.of(
            self.config.decode,
            lengths.tolist(),
            max_length=model.max_length,
            vocab_size=self.tokenizer.vocab_size,
            specials=self.tokenizer.specials,
            device=memory.device,
        )
        found = [_Written(each) for each in utterances]
        way = listening(model, memory, real, self.how.joint, self.tokenizer.specials)
        walker = walk(*way, rules, likeliest)
        while True:
            with record() as tape:
                step = next(walker, None)
            if step is None:
                return found
            cross = [tape[site.name][-1] for site in tape.sites() if site.kind == "cross"]
            rows = torch.stack([weights[:, :, -1].mean(1) for weights in cross]).mean(0)  # (R, S)
            logp = step.logp.gather(1, step.ids[:, None])[:, 0]
            for row, sentence in enumerate(step.sentence.tolist()):
                each = found[sentence]
                each.ids.append(int(step.ids[row]))
                each.logp.append(float(logp[row]))
                each.rows.append(rows[row, : len(each.heard.memory)].float().cpu().numpy())

    def _segment(self, written: _Written, words: bool = True) -> Segment:
        """What was written as a segment; its ends are those of its words, where they are known."""
        heard, end = written.heard, self.tokenizer.end_id
        ids = [token for token in written.ids if token != end]
        begin = heard.start * self.place
        timed = (
            words_of(ids, written.logp, np.stack(written.rows), self.tokenizer, self.place, begin)
            if words and ids
            else []
        )
        silent = 0.0
        if heard.spoken is not None:
            silent = float(heard.spoken[:, self.blank].sum().exp())
        return Segment(
            self.tokenizer.decode(ids).strip(),
            timed[0].start if timed else begin,
            timed[-1].end if timed else begin + len(heard.memory) * self.place,
            float(np.mean(written.logp)) if written.logp else 0.0,
            silent,
            timed,
            ids,
        )


def load_listener(
    folder: Path,
    device: torch.device | str = "cpu",
    *,
    precision: str = "auto",
    engine: str = "auto",
    **options: Any,
) -> Listener:
    """The model in a folder, ready to listen; `options` are those of a Whisper model.

    `engine` and `precision` are as `regard.load` has them for a translator: Whisper models run in the engine.
    """
    loaded = load_folder(folder, device)
    if engine != "auto" or precision != "auto":
        left_aside(loaded.model, HEARD, precision=precision, engine=engine)  # refuses what cannot be
    if loaded.config.of(SpeechConfig).decoding == "whisper":
        from regard.engine.listener import PackedListener
        from regard.tasks.speech.whisper import Whisper

        reason = left_aside(loaded.model, HEARD, precision=precision, engine=engine)
        packed = None if reason else PackedListener(loaded.model, precision=precision)  # type: ignore[arg-type]
        return Whisper(loaded, packed=packed, **options)
    if options:
        raise UsageError(f"{next(iter(options))} means nothing to {folder}, which is no Whisper model")
    return Listener(loaded)


__all__ = ["Listener", "Piece", "Segment", "Studied", "Word", "load_listener"]
