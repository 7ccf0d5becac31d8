"""`regard evaluate` of a recogniser: WER and CER on recordings with texts, and its speed.

    real_time_factor = seconds of work / seconds of sound

Before this file: `listener.py`, `regard.measure.wer`.
"""

import time
from collections.abc import Iterable

from regard.audio.sound import Recording
from regard.errors import DataError
from regard.measure.wer import ErrorRates
from regard.tasks.speech.examples import Recordings
from regard.tasks.speech.listener import Listener
from regard.tasks.task import Evaluation, Judge


def evaluation(listener: Listener, data: Recordings, together: int, limit: int | None = None) -> Evaluation:
    """WER and CER over all recordings."""
    spoken = list(data.read(data.train))[:limit]
    if not spoken:
        raise DataError(f"{', '.join(map(str, data.train))}: there is nothing to measure on")
    rates = ErrorRates(plain=listener.how.scored == "words")
    began, sound = time.perf_counter(), 0.0
    for each, text in zip(spoken, texts(listener, [each.path for each in spoken], together), strict=True):
        rates.add(text, each.text)
        recording = Recording(each.path)
        sound += recording.seconds
        recording.close()
    seconds = time.perf_counter() - began
    scores = rates.scores()
    lines = [
        f"WER {scores['wer'].value:.2%}, CER {scores['cer'].value:.2%} on {rates.count:,} recordings "
        f"({rates.words:,} words)",
        f"{sound:.1f} s of sound in {seconds:.1f} s: {sound / max(seconds, 1e-9):.1f} times as fast",
    ]
    more = {
        "files": rates.count,
        "seconds": round(seconds, 3),
        "real_time_factor": seconds / max(sound, 1e-9),
    }
    return Evaluation(scores, more, lines)


def judge(listener: Listener, data: Recordings, *, limit: int = 200, batch_size: int = 0) -> Judge:
    """A measure by WER that can be taken many times, while heads are off."""
    count = len(list(data.read(data.train))[:limit])
    return Judge(
        listener.model,
        lambda: evaluation(listener, data, batch_size or 16, limit).scores,
        f"{count} recordings",
    )


def texts(listener: Listener, paths: Iterable[object], together: int = 16) -> Iterable[str]:
    """What is said in each recording, in a line."""
    for segments in listener.transcribe_all(paths, together=together):  # type: ignore[arg-type]
        yield " ".join(segment.text for segment in segments)
