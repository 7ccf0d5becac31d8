"""What was heard in a recording as OpenAI tells it: JSON, plain text, subtitles, everything (verbose_json).

Segments are added as they are heard; what they take is bounded. Before this file: `regard.tasks.speech`;
after it: `transcriptions.py`.
"""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from regard.serving.answers import in_json
from regard.serving.limits import Refusal
from regard.text.languages import language_name

if TYPE_CHECKING:
    from regard.tasks.speech.listener import Segment, Word

PLAIN = "text/plain; charset=utf-8"
MEDIA = {
    "json": "application/json",
    "verbose_json": "application/json",
    "text": PLAIN,
    "srt": PLAIN,
    "vtt": PLAIN,
}
SEGMENT, WORD, TOKEN = 400, 300, 32  # bytes that each takes here, beside its text


@dataclass
class Transcript:
    """What was heard so far, and how it is to be told."""

    form: str
    grains: Sequence[str]  # word, segment
    seconds: float
    language: str = ""  # that was asked for
    most: float = 1e6  # bytes
    segments: "list[Segment]" = field(default_factory=list)
    held: int = 0

    @property
    def verbose(self) -> bool:
        """Whether times and probabilities are told."""
        return self.form == "verbose_json"

    @property
    def text(self) -> str:
        """Everything that was said."""
        return " ".join(segment.text for segment in self.segments)

    def add(self, segment: "Segment") -> None:
        """One more; a refusal where nobody speaks so fast."""
        self.held += SEGMENT + 4 * len(segment.text) + WORD * len(segment.words) + TOKEN * len(segment.ids)
        if self.held > self.most + SEGMENT + 1000:
            raise Refusal(413, "more was heard in the recording than can be told; is it speech?")
        self.segments.append(segment)

    def told(self, segment: "Segment") -> dict[str, Any]:
        """What the stream tells of a segment beside its text."""
        found: dict[str, Any] = {"start": round(segment.start, 3), "end": round(segment.end, 3)}
        if "segment" in self.grains:
            found["segment"] = _segment(len(self.segments) - 1, segment)
        if "word" in self.grains:
            found["words"] = [_word(word) for word in segment.words]
        return found


def whole(transcript: Transcript) -> bytes:
    """The answer, as it is sent."""
    from regard.tasks.speech.subtitles import srt, vtt

    if transcript.form == "text":
        return f"{transcript.text}\n".encode()
    if transcript.form in ("srt", "vtt"):
        return {"srt": srt, "vtt": vtt}[transcript.form](transcript.segments).encode()
    if not transcript.verbose:
        return in_json({"text": transcript.text})
    tree: dict[str, Any] = {
        "task": "transcribe",
        "language": _language(transcript),
        "duration": round(transcript.seconds, 3),
        "text": transcript.text,
    }
    if "word" in transcript.grains:
        tree["words"] = [_word(word) for segment in transcript.segments for word in segment.words]
    if "segment" in transcript.grains:
        tree["segments"] = [_segment(number, each) for number, each in enumerate(transcript.segments)]
    return in_json(tree)


def _language(transcript: Transcript) -> str:
    """The name of the language that was heard, as OpenAI spells it; of a model that knows none, as asked."""
    heard = next((segment.language for segment in transcript.segments if segment.language), "")
    code = heard or transcript.language
    return language_name(code).lower() if code else "unknown"


def _word(word: "Word") -> dict[str, Any]:
    times = {"start": round(word.start, 3), "end": round(word.end, 3)}
    return {"word": word.text} | times | {"probability": round(word.probability, 4)}


def _segment(number: int, segment: "Segment") -> dict[str, Any]:
    text = segment.text.encode()
    return {
        "id": number,
        "seek": round(segment.start * 100),
        "start": round(segment.start, 3),
        "end": round(segment.end, 3),
        "text": segment.text,
        "tokens": list(segment.ids),
        "temperature": segment.temperature,
        "avg_logprob": segment.logp,
        "compression_ratio": round(len(text) / max(1, len(zlib.compress(text))), 4),
        "no_speech_prob": segment.no_speech,
    }
