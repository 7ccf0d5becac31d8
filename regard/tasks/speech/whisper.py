"""Whisper's way of listening: windows of 30 seconds, times among the words, a warmer try after a bad one.

    prompt  [<|startofprev|> what was said before] <|startoftranscript|> [language, task]
            then times and pieces in turn
    text    greedy; again at temperatures 0.2 ... 1.0 where it repeats itself or is unlikely
    seek    to the last time that closes a segment, else past the window

The rules are those of the paper's section 4.5 and of its code: a time opens and closes each segment and never
goes back; where all times together are likelier than any piece, one comes. Before this file: `listener.py`.
"""

import zlib
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from regard.audio.frames import lifted
from regard.audio.resample import Samples
from regard.data.inputs import Frames
from regard.engine.listener import PackedListener
from regard.errors import UsageError, shown
from regard.models.folder import Loaded
from regard.tasks.speech.listener import TOGETHER, Listener, Piece, Segment, Sound, Studied
from regard.tasks.speech.pen import EnginePen, ModelPen, Pen
from regard.tasks.speech.timing import words_of
from regard.text.whisper import STEP, Steering

WINDOW = 30.0  # seconds
WARMER = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)
REPEATS, UNLIKELY, SILENT = 2.4, -1.0, 0.6  # a text packed so much, or so unlikely, is tried again; no speech
FAINT = 1e-3  # the loudest sample of a window in which a text needs somebody who probably speaks
STEERED = 5  # tokens at most that steer, around what was said before
FIRST = 50  # times at most before the first segment: one second
_SIGNS = '"#()*+/:;<=>@[\\]^_`{|}~「」『』'
_JOINED = "<< >> <<< >>> -- --- -( -[ (' (\" (( )) ((( ))) [[ ]] {{ }} ♪♪ ♪♪♪"
_NOTES = "♩♪♫♬♭♮♯"


@dataclass
class _Try:
    """What was written of a window, and how."""

    ids: list[int] = field(default_factory=list)
    logp: list[float] = field(default_factory=list)
    rows: list[Any] = field(default_factory=list)  # where each token listened: (S,)
    no_speech: float = 0.0
    ended: bool = False
    language: str = ""
    warm: float = 0.0

    @property
    def mean(self) -> float:
        """log p of a token, the end counted."""
        return sum(self.logp) / (len(self.ids) + 1)


class Whisper(Listener):
    """A Whisper model that listens."""

    prompted = True

    def __init__(
        self,
        loaded: Loaded,
        *,
        language: str | None = None,
        times: bool = True,
        packed: PackedListener | None = None,
    ) -> None:
        """`packed` listens and writes in the engine; without it torch does."""
        super().__init__(loaded)
        self.packed = packed
        self.steering, self.times = Steering.of(self.tokenizer), times
        self.language, self.window = self._known(language), round(WINDOW * self.rate)
        self.warmer: Sequence[float] = WARMER
        self.before: Sequence[int] = ()  # what was said before, as ids
        self.never = self._never()
        self.first = [*self.tokenizer.encode(" "), self.steering.end]  # what no text begins with

    def _known(self, language: str | None) -> str | None:
        """The code of a language, if the model knows it."""
        steer = self.steering
        if language and language not in (("en",) if steer.english else steer.languages):
            raise UsageError(
                "the model knows English alone (en)"
                if steer.english
                else f"the model does not know the language {shown(language)}; codes are as en, de, zh"
            )
        return language or None

    def asked(
        self, *, language: str = "", temperature: float = 0.0, prompt: str = "", readable: bool = False
    ) -> Listener:
        """The same in a language, and at a temperature; 0 begins greedily and goes on as WARMER does.

        `prompt` stands as what was said before every window: names and spellings are taken from it. Its last
        tokens are read, as many as leave half of the places to what is written.
        """
        other = copy(self)
        told = self.tokenizer.encode(f" {prompt.strip()}") if prompt.strip() else []
        other.before = told[-(self.model.max_length // 2 - STEERED) :]
        other.packed = None if readable else self.packed
        other.language = self._known(language) or self.language
        other.warmer = (temperature,) if temperature > 0 else self.warmer
        return other

    def _never(self) -> list[int]:
        """Pieces that are no speech: brackets, notes, marks; and what steers."""
        encode = self.tokenizer.encode
        found = {encode(" -")[0], encode(" '")[0]}
        for sign in (*_SIGNS, *_JOINED.split(), *_NOTES):
            for ids in (encode(sign), encode(f" {sign}")):
                if len(ids) == 1 or sign in _NOTES:
                    found.add(ids[0])
        return [*sorted(found), *range(self.steering.start, self.steering.times)]

    def transcribe_all(self, sounds: Iterable[Sound], *, together: int = TOGETHER) -> Iterator[list[Segment]]:
        """The segments of each recording."""
        return (list(self.transcribe(sound, words=False)) for sound in sounds)

    def follow(self, blocks: Iterable[Samples]) -> Iterator[Piece]:
        """It hears 30 seconds at once."""
        raise UsageError(
            "a Whisper model hears windows of 30 s; a stream needs one with attention.kind=local"
        )

    def _segments(self, blocks: Iterable[Samples], words: bool) -> Iterator[Segment]:
        """Window after window; each begins where the last segment of the one before ended."""
        held, start, blocks = np.zeros(0, np.float32), 0.0, iter(blocks)
        while True:
            while len(held) < self.window and (new := next(blocks, None)) is not None:
                held = np.concatenate([held, new])
            if len(held) < self.framing.hop * 2:
                return
            found, seek = self._window(held[: self.window], start, words)
            yield from found
            held, start = held[round(seek * self.rate) :], start + seek

    def encode(self, samples: Samples) -> Tensor:
        """Memory (1, 1500, D) of at most 30 seconds of samples."""
        memory: Tensor = self.model.encode(self._inputs(samples))[0]
        return memory

    def _inputs(self, samples: Samples) -> Frames:
        padded = torch.zeros(1, self.window)
        padded[0, : len(samples)] = torch.from_numpy(np.ascontiguousarray(samples))
        frames = lifted(self.framing.frames(padded))
        return Frames(frames.to(next(self.model.parameters()).device))

    def _begin(self, samples: Samples, words: bool) -> Pen:
        """What a window is written with; its attention is taped where words have times."""
        if self.packed is None:
            return ModelPen(self.model, self.encode(samples), taped=words)
        return EnginePen(self.packed, self.packed.hear(self._inputs(samples)), taped=words)

    def studied(self, samples: Samples) -> Studied:
        """A window, of which the frames of the recording alone are kept."""
        memory = self.encode(samples[: self.window])
        heard = self._best(ModelPen(self.model, memory))
        text = self.tokenizer.decode([token for token in heard.ids if token < self.steering.end]).strip()
        frames = self._frames(samples[: self.window])
        return Studied(frames, memory, self._prompt(heard.language), heard.ids, text)

    def _window(self, samples: Samples, start: float, words: bool) -> tuple[list[Segment], float]:
        """The segments of a window, and how far to go on."""
        long = len(samples) / self.rate
        if float(np.ptp(samples)) == 0.0:
            return [], long
        heard = self._best(self._begin(samples, words))
        # "you" is what silence is likely to have said, by the subtitles that Whisper was trained on
        faint = float(np.abs(samples - samples.mean()).max()) < FAINT
        if heard.no_speech > SILENT and (faint or heard.mean < UNLIKELY):
            return [], long
        parts, seek = self._cut(heard, long)
        found = []
        for first, last, begin, end in parts:
            ids = [token for token in heard.ids[first:last] if token < self.steering.end]
            text = self.tokenizer.decode(ids).strip()
            if text:
                timed = self._words(heard, first, last, round(long / STEP), start) if words else []
                times = start + begin, start + end
                sure = heard.mean, heard.no_speech
                found.append(Segment(text, *times, *sure, timed, ids, heard.language, heard.warm))
        return found, max(seek, 2 * STEP)

    def _cut(self, heard: _Try, long: float) -> tuple[list[tuple[int, int, float, float]], float]:
        """Segments (first and last token, begin and end in seconds), and how far to go on."""
        times = self.steering.times
        marks = [token >= times for token in heard.ids]
        single = marks[-2:] == [False, True]
        turns = [place for place in range(1, len(marks)) if marks[place - 1] and marks[place]]
        if not turns:
            said = [token for token in heard.ids if token > times]
            end = (said[-1] - times) * STEP if said else long
            return [(0, len(heard.ids), 0.0, min(end, long) or long)], long
        ends = [*turns, len(marks)] if single else turns
        parts, first = [], 0
        for last in ends:
            begin, end = heard.ids[first] - times, heard.ids[last - 1] - times
            parts.append((first, last, begin * STEP, end * STEP))
            first = last
        return parts, long if single else min(long, (heard.ids[turns[-1] - 1] - times) * STEP)

    def _best(self, pen: Pen) -> _Try:
        """The first try that neither repeats itself nor is unlikely; the last one where none is."""
        language = self._spoken(pen)
        prompt = self._prompt(language)
        for warm in self.warmer:
            heard = self._write_window(pen, prompt, warm)
            heard.language, heard.warm = language, warm
            text = self.tokenizer.decode([token for token in heard.ids if token < self.steering.end]).encode()
            packed = len(text) / max(1, len(zlib.compress(text)))
            unlikely = heard.mean < UNLIKELY and heard.no_speech <= SILENT
            if packed <= REPEATS and not unlikely:
                break
        return heard

    def _spoken(self, pen: Pen) -> str:
        """The language: it is heard where it was not told."""
        steer = self.steering
        if steer.english or self.language:
            return self.language or "en"
        logits, _ = pen.read([steer.start], pen.begin())
        return max(steer.languages, key=lambda each: float(logits[steer.languages[each]]))

    def _prompt(self, language: str) -> list[int]:
        """What the decoder reads first."""
        steer = self.steering
        told = [] if steer.english else [steer.languages[language], steer.tasks["transcribe"]]
        before = [steer.before, *self.before] if self.before else []
        return [*before, steer.start, *told, *([] if self.times else [steer.no_times])]

    def _write_window(self, pen: Pen, prompt: Sequence[int], warm: float) -> _Try:
        """One try at a temperature; 0 is greedy."""
        steer, heard = self.steering, _Try()
        random = torch.Generator().manual_seed(round(warm * 10))
        start = prompt.index(steer.start) + 1  # whether anybody speaks is said there
        logits, state = pen.read(prompt[:start], pen.begin())
        heard.no_speech = float(logits.softmax(-1)[steer.no_speech])
        if prompt[start:]:
            logits, state = pen.read(prompt[start:], state)
        most = self.model.max_length // 2
        while len(heard.ids) < most:
            logp = self.ruled(logits.clone(), heard.ids).log_softmax(-1)
            token = int(logp.argmax())
            if warm > 0:
                token = int(torch.multinomial((logp / warm).softmax(-1), 1, generator=random))
            heard.logp.append(float(logp[token]))
            if token == steer.end:
                heard.ended = True
                break
            heard.ids.append(token)
            logits, state = pen.read([token], state, heard.rows)
        return heard

    def ruled(self, logits: Tensor, written: Sequence[int]) -> Tensor:
        """Logits (V,) of what comes after `written`, -inf where a rule forbids it."""
        steer, never = self.steering, -torch.inf
        times = steer.times
        logits[self.never] = never
        if not written:
            logits[self.first] = never
        if not self.times:
            logits[times:] = never
            return logits
        marks = [token >= times for token in written]
        last, before = (marks[-1:] or [False])[0], len(marks) < 2 or marks[-2]
        if last and before:
            logits[times:] = never
        elif last:
            logits[: steer.end] = never
        said = [token for token in written if token >= times]
        if said:
            logits[times : said[-1] + (0 if last and not before else 1)] = never
        if not written:
            logits[:times] = never
            logits[times + FIRST + 1 :] = never
        logp = logits.log_softmax(-1)
        if float(logp[times:].logsumexp(0)) > float(logp[:times].max()):
            logits[:times] = never
        return logits

    def _words(self, heard: _Try, first: int, last: int, places: int, start: float) -> list[Any]:
        """The words of a segment's tokens, by where the decoder listened while it wrote them."""
        kept = [n for n in range(first, last) if heard.ids[n] < self.steering.end]
        if not kept:
            return []
        times = self.steering.times
        ends = [heard.ids[n] - times for n in (first, last - 1) if heard.ids[n] >= times]
        low, high = (ends[0], ends[-1]) if len(ends) == 2 and ends[0] < ends[1] else (0, places)
        low, high = min(low, places - 1), max(min(high, places), min(low, places - 1) + 1)
        rows = np.stack([heard.rows[n][low:high] for n in kept])
        ids, logp = [heard.ids[n] for n in kept], [heard.logp[n] for n in kept]
        return words_of(ids, logp, rows, self.tokenizer, STEP, start + low * STEP)
