"""Recognisers on a real server, asked by OpenAI's own client; recordings that are none, or too long."""

import io
import wave
from dataclasses import replace
from pathlib import Path
from typing import Any

import openai
import pytest
from forms import KIND, form
from listeners import write_listener

from regard import load
from regard.audio.tones import write_calls
from regard.serving.limits import SAID, Refusal
from regard.serving.transcript import Transcript, whole
from regard.tasks.speech.listener import Segment
from regard.tasks.speech.subtitles import srt, vtt
from regard.tasks.speech.timing import Word

PATH = "/v1/audio/transcriptions"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_listener(tmp_path_factory.mktemp("speech") / "ears")


@pytest.fixture(scope="module")
def hearing(folder: Path, start: Any) -> Any:
    with start("-m", folder) as server:
        yield server
        assert server.process.poll() is None, "the server has ended"
    assert "Traceback" not in "".join(server.said)


@pytest.fixture(scope="module")
def client(hearing: Any) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{hearing.url}/v1", api_key="none", max_retries=0)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A call, longer than the listener was trained on: several segments."""
    return write_calls(tmp_path_factory.mktemp("calls"), 5, 1).parent / "5.wav"


@pytest.fixture(scope="module")
def heard(folder: Path, recording: Path) -> list[Segment]:
    found = list(load(folder).transcribe(recording))
    assert found
    return found


def sent(server: Any, data: bytes, name: str = "a.wav", **fields: str) -> Any:
    body = form(name, data, **fields)
    return server.ask("POST", PATH, body, content_type=KIND)


def test_the_text_is_that_of_the_verb(client: openai.OpenAI, recording: Path, heard: list[Segment]) -> None:
    with recording.open("rb") as file:
        found = client.audio.transcriptions.create(model="whisper-1", file=file)
    assert found.text == " ".join(segment.text for segment in heard)


@pytest.mark.parametrize(("form", "wanted"), [("srt", srt), ("vtt", vtt)])
def test_subtitles_are_those_of_the_verb(
    client: openai.OpenAI, recording: Path, heard: list[Segment], form: Any, wanted: Any
) -> None:
    found = client.audio.transcriptions.create(model="ears", file=recording, response_format=form)
    assert str(found) == wanted(heard)


def test_plain_text(client: openai.OpenAI, recording: Path, heard: list[Segment]) -> None:
    found = client.audio.transcriptions.create(model="ears", file=recording, response_format="text")
    assert str(found) == " ".join(segment.text for segment in heard) + "\n"


def test_everything_is_told(client: openai.OpenAI, recording: Path, heard: list[Segment]) -> None:
    found = client.audio.transcriptions.create(
        model="ears",
        file=recording,
        response_format="verbose_json",
        timestamp_granularities=["word", "segment"],
    )
    assert found.text == " ".join(segment.text for segment in heard)
    with wave.open(str(recording)) as header:
        assert found.duration == pytest.approx(header.getnframes() / header.getframerate(), abs=0.01)
    assert found.segments is not None
    assert found.words is not None
    assert [each.text for each in found.segments] == [segment.text for segment in heard]
    for each, segment in zip(found.segments, heard, strict=True):
        assert (each.start, each.end) == pytest.approx((segment.start, segment.end), abs=0.002)
        assert each.avg_logprob == pytest.approx(segment.logp, abs=1e-3)
        assert each.tokens == list(segment.ids)
    words = [word for segment in heard for word in segment.words]
    assert [each.word for each in found.words] == [word.text for word in words]
    assert [each.start for each in found.words] == pytest.approx([w.start for w in words], abs=0.002)
    alone = client.audio.transcriptions.create(model="ears", file=recording, response_format="verbose_json")
    assert alone.words is None
    assert alone.segments is not None


def test_a_stream_says_what_the_whole_says(
    client: openai.OpenAI, recording: Path, heard: list[Segment]
) -> None:
    events = list(client.audio.transcriptions.create(model="ears", file=recording, stream=True))
    text = " ".join(segment.text for segment in heard)
    assert events[-1].type == "transcript.text.done"
    assert events[-1].text == text
    assert [event.type for event in events[:-1]] == ["transcript.text.delta"] * len(heard)
    assert "".join(event.delta for event in events[:-1]) == text


def test_heads_can_be_off(hearing: Any, recording: Path) -> None:
    off = '{"decoder.0.cross": [0, 1], "decoder.1.cross": [0, 1]}'
    data = recording.read_bytes()
    silent = sent(hearing, data, heads_off=off, response_format="verbose_json").tree
    plain = sent(hearing, data, response_format="verbose_json").tree
    assert [each["avg_logprob"] for each in silent["segments"]] != [
        each["avg_logprob"] for each in plain["segments"]
    ]
    assert "heads_off" in str(sent(hearing, data, heads_off='{"decoder.9.cross": [0]}').tree["error"])


def wav(samples: int, rate: int = 8000, channels: int = 1) -> bytes:
    held = io.BytesIO()
    with wave.open(held, "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(bytes(2 * samples * channels))
    return held.getvalue()


@pytest.mark.parametrize(
    ("data", "fields", "status", "words"),
    [
        (b"", {}, 400, "send a recording as a file"),
        (b"no sound", {}, 400, "no sound file that can be read"),
        (wav(0), {}, 400, "holds no samples"),
        (wav(800)[:44], {}, 400, "holds no samples"),
        (wav(1), {}, 400, "holds 1 sample, too few to hear anything"),
        (wav(800, rate=10), {}, 400, "its header says 10 Hz"),
        (wav(1_801 * 1000, rate=1000), {}, 413, "longer than 1800 seconds"),
        (wav(800), {"response_format": "xml"}, 400, "response_format"),
        (wav(800), {"timestamp_granularities[]": "word"}, 400, "they need response_format=verbose_json"),
        (wav(800), {"timestamp_granularities[]": "line", "response_format": "verbose_json"}, 400, "granul"),
        (wav(800), {"temperature": "nan"}, 400, "temperature"),
        (wav(800), {"prompt": "the thin cat"}, 400, "prompt: a prompt is read by Whisper models alone"),
    ],
)
def test_what_is_wrong_is_one_line(
    hearing: Any, data: bytes, fields: dict[str, str], status: int, words: str
) -> None:
    found = sent(hearing, data, **fields)
    assert found.status == status, found.body
    assert words in found.tree["error"]["message"]


def test_word_times_without_verbose_json_are_a_bad_request(client: openai.OpenAI, recording: Path) -> None:
    with pytest.raises(openai.BadRequestError) as caught:
        client.audio.transcriptions.create(
            model="ears", file=recording, response_format="json", timestamp_granularities=["word"]
        )
    assert caught.value.param == "timestamp_granularities"


def test_silence_is_no_text(hearing: Any) -> None:
    found = sent(hearing, wav(800))  # by a model that hears something everywhere
    assert found.status == 200
    assert found.tree["text"] == ""


def test_a_file_that_is_too_large_is_refused_before_it_is_read(hearing: Any) -> None:
    found = hearing.ask("POST", PATH, b"x", content_type="multipart/form-data", content_length="30000000")
    assert found.status == 413
    assert hearing.gauge("regard_queue_requests") == 0


def test_odd_rates_and_many_channels_take_no_more_memory(hearing: Any) -> None:
    before = hearing.gauge("process_resident_memory_bytes")
    for data in (wav(20_000, rate=767_999), wav(200, channels=1024), wav(9000, rate=44_101, channels=7)):
        assert sent(hearing, data).status == 200
    assert hearing.gauge("process_resident_memory_bytes") < before + 150_000_000


def test_what_is_told_is_bounded() -> None:
    transcript = Transcript("verbose_json", ["word"], 2.0, most=2.0 * SAID)
    words = [Word("a", 0.0, 0.1, 1.0)] * 9
    segment = Segment("a " * 9, 0.0, 1.0, -1.0, 0.0, words, [5] * 18)
    transcript.add(segment)
    with pytest.raises(Refusal, match="more was heard"):
        transcript.add(replace(segment, words=words * 9))
    assert len(whole(transcript)) < SAID
