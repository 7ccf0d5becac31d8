"""Segments as files: plain text, WebVTT, SubRip, a table, JSON. One function a format, and their endings.

Before this file: `listener.py`; after it: `regard transcribe` and the server.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

from regard.tasks.speech.listener import Segment


def clock(seconds: float, mark: str = ".") -> str:
    """Hours, minutes, seconds, thousandths.

    >>> clock(3725.5), clock(0.25, ",")
    ('01:02:05.500', '00:00:00,250')
    """
    thousandths = round(seconds * 1000)
    minutes, thousandths = divmod(thousandths, 60_000)
    return f"{minutes // 60:02d}:{minutes % 60:02d}:{thousandths // 1000:02d}{mark}{thousandths % 1000:03d}"


def txt(segments: Sequence[Segment]) -> str:
    """A line a segment."""
    return "".join(f"{segment.text}\n" for segment in segments)


def vtt(segments: Sequence[Segment]) -> str:
    """WebVTT, as browsers show it."""
    cues = (
        f"\n{clock(segment.start)} --> {clock(segment.end)}\n{_cue(segment.text)}\n" for segment in segments
    )
    return "WEBVTT\n" + "".join(cues)


def srt(segments: Sequence[Segment]) -> str:
    """SubRip, as players show it."""
    cues = (
        f"{number}\n{clock(segment.start, ',')} --> {clock(segment.end, ',')}\n{_cue(segment.text)}\n"
        for number, segment in enumerate(segments, 1)
    )
    return "\n".join(cues)


def tsv(segments: Sequence[Segment]) -> str:
    """Start and end in thousandths, and the text, with a header."""
    lines = (
        f"{round(segment.start * 1000)}\t{round(segment.end * 1000)}\t{_flat(segment.text)}\n"
        for segment in segments
    )
    return "start\tend\ttext\n" + "".join(lines)


def as_json(segments: Sequence[Segment]) -> str:
    """One object: the text, and the segments with their words."""
    tree = {"text": " ".join(segment.text for segment in segments), "segments": list(map(as_tree, segments))}
    return json.dumps(tree, ensure_ascii=False) + "\n"


def as_tree(segment: Segment) -> dict[str, Any]:
    """A segment as plain values."""
    return {
        "start": round(segment.start, 3),
        "end": round(segment.end, 3),
        "text": segment.text,
        "avg_logprob": segment.logp,
        "no_speech_prob": segment.no_speech,
        "words": [
            asdict(word) | {"start": round(word.start, 3), "end": round(word.end, 3)}
            for word in segment.words
        ],
    }


def _cue(text: str) -> str:
    """A text that no player takes for the arrow between two times."""
    return _flat(text).replace("-->", "->")


def _flat(text: str) -> str:
    return " ".join(text.split())


FORMATS: dict[str, Callable[[Sequence[Segment]], str]] = {
    "txt": txt,
    "vtt": vtt,
    "srt": srt,
    "tsv": tsv,
    "json": as_json,
}
