"""Recognisers on a server: OpenAI's `/v1/audio/transcriptions`, whole or as it is heard, and looks into them.

A recording comes as a file of a form, is opened at the desk, and decoded and heard in the batchers' threads,
a turn at a time: between two turns others are heard, and a client that has gone is noticed. What is told of
it is in `transcript.py`. Before this file: `family.py`, `door.py`; after it: `app.py`.
"""

import asyncio
import io
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import AliasChoices, BeforeValidator, Field
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from regard.audio.sound import Recording
from regard.errors import RegardError
from regard.serving import limits as bounds
from regard.serving import schema
from regard.serving.answers import in_json, openai_error, ready
from regard.serving.batcher import Job
from regard.serving.body import Sent
from regard.serving.door import event, listening, read_fields, results
from regard.serving.family import Family, Place, Route
from regard.serving.limits import Refusal
from regard.serving.looking import HeadsOff, Off, checked, off_of, without, wrong
from regard.serving.room import Place as Seat
from regard.serving.transcript import MEDIA, Transcript, whole
from regard.tasks.task import Task, with_article

if TYPE_CHECKING:
    from regard.serving.service import Service
    from regard.tasks.speech.listener import Listener, Segment

TURN = 0.5  # seconds that one recording is heard, then the next
LOOKED = 30.0  # seconds of a recording that is looked into

Name = Annotated[str, Field(max_length=1000, description="As /v1/models has it; of one model: any.")]
Binary = Annotated[Any, Field(json_schema_extra={"type": "string", "format": "binary"})]
Grains = Annotated[
    list[Literal["word", "segment"]],
    BeforeValidator(lambda value: [value] if isinstance(value, str) else value),
    Field(max_length=2, description="What has times of its own; needs verbose_json."),
]


class Transcription(schema.Given):
    """What OpenAI's `/v1/audio/transcriptions` takes; `heads_off` is ours."""

    carries: ClassVar[str] = "recording"

    file: Binary
    model: Name = ""
    language: Annotated[str, Field(max_length=35, description="A code; Whisper models alone.")] = ""
    prompt: Annotated[
        str, Field(max_length=4000, description="What was said before; Whisper models alone.")
    ] = ""
    response_format: Literal["json", "text", "srt", "vtt", "verbose_json"] = "json"
    temperature: Annotated[float, Field(ge=0, le=1)] = 0.0
    timestamp_granularities: Annotated[
        Grains,
        Field(validation_alias=AliasChoices("timestamp_granularities[]", "timestamp_granularities")),
    ] = Field(default_factory=list)
    stream: bool = False
    heads_off: HeadsOff = Field(default_factory=dict)


class Listening(schema.Given):
    """A recording to look into."""

    file: Binary
    model: Name = ""
    heads_off: HeadsOff = Field(default_factory=dict)


@dataclass(frozen=True)
class Wish:
    """What is asked of a turn: to go on, or to look."""

    model: str
    off: Off
    look: bool = False


@dataclass
class Heard:
    """A request under way: its recording, the segments still to come, and what was told of it."""

    ask: Transcription
    model: str
    recording: Recording
    size: int  # bytes of the file
    segments: "Iterator[Segment]"
    transcript: Transcript
    job: Job | None = None
    fault: Exception | None = None

    def give_up(self, fault: Exception) -> None:
        """Hear no more of it."""
        self.fault = fault
        if self.job is not None:
            self.job.give_up(fault)


@dataclass(frozen=True)
class Sound:
    """Samples to look into."""

    samples: Any = field(repr=False)


class Transcriptions(Family):
    """The recognisers of a server."""

    look_field = "file"
    look_carries = "recording"

    def __init__(self, service: "Service", task: Task, places: Sequence[Place]) -> None:
        super().__init__(service, task, places)
        self.models: dict[str, Listener] = {}

    def load(self, place: Place) -> None:
        """As its verb loads it."""
        how = self.service.loading
        self.models[place.name] = self.task.load(
            place.folder, device=how.device, precision=how.precision, engine=how.engine
        )

    async def warm(self) -> None:
        """A second of noise for each."""
        import numpy as np

        for model in self.models.values():
            noise = np.random.default_rng(1).normal(size=model.rate).astype(np.float32) / 9
            await asyncio.to_thread(lambda model=model, noise=noise: list(model.transcribe(noise)))  # type: ignore[misc]

    def describe(self, place: Place) -> dict[str, Any]:
        """Samples a second that it hears, how far ahead, and how long a recording may be."""
        model = self.models.get(place.name)
        if model is None:
            return {}
        return {"rate": model.rate, "delay": model.delay, "seconds": self.service.limits.sound}

    def routes(self) -> Sequence[Route]:
        """OpenAI's."""
        told: dict[str, Any] = {
            "content": {"application/json": {}, "text/plain": {}, "text/event-stream": {}}
        }
        return (Route("/v1/audio/transcriptions", self.transcribe, Transcription, told, queued=True),)

    # Requests ---------------------------------------------------------------------------------------

    async def transcribe(self, request: Request) -> Response:
        """What is said in a recording; whole, or as it is heard."""
        heard = await read_fields(self.service, request, self._opened, carries=Transcription.carries)
        seat = self._seated(request, heard)
        if heard.ask.stream:
            return StreamingResponse(self._events(heard, seat), media_type="text/event-stream")
        async with listening(request, heard.give_up):
            async for _ in self._turns(heard):
                pass
        seat.computed()
        body = await self.service.desk.do(lambda: whole(heard.transcript), long=True)
        return Response(body, media_type=MEDIA[heard.ask.response_format])

    def _opened(self, fields: dict[str, Any]) -> Heard:
        """A request whose recording is open and no longer than may be; at the desk."""
        ask = Transcription.of(fields)
        if ask.timestamp_granularities and ask.response_format != "verbose_json":
            raise wrong("timestamp_granularities", "they need response_format=verbose_json")
        name, model = self.named(ask.model)
        checked(model.model, ask.heads_off)
        recording, size = self._recording(ask.file)
        grains = ask.timestamp_granularities or ["segment"]
        try:
            asked = model.asked(
                language=ask.language,
                temperature=ask.temperature,
                prompt=ask.prompt,
                readable=bool(ask.heads_off),
            )
        except RegardError as error:
            cause = "prompt" if ask.prompt.strip() and not model.prompted else "language"
            raise wrong(cause, str(error)) from error
        blocks = self._bounded(recording, model.rate)
        transcript = Transcript(
            ask.response_format, grains, recording.seconds, ask.language, bounds.SAID * recording.seconds
        )
        segments = asked.transcribe(blocks, words=ask.response_format in ("srt", "vtt", "verbose_json"))
        return Heard(ask, name, recording, size, segments, transcript)

    def _recording(self, sent: Any) -> tuple[Recording, int]:
        """A file that was sent, opened, and its bytes."""
        if not isinstance(sent, Sent) or not sent.data:
            raise wrong("file", "send a recording as a file of a form (multipart/form-data)")
        try:
            recording = Recording(io.BytesIO(sent.data), "the recording")
        except RegardError as error:
            raise wrong("file", str(error)) from error
        if recording.seconds > self.service.limits.sound:
            recording.close()
            raise self._too_long()
        return recording, len(sent.data)

    def _too_long(self) -> Refusal:
        most = self.service.limits.sound
        return Refusal(413, f"the recording is longer than {most:g} seconds; send it in parts", param="file")

    def _bounded(self, recording: Recording, rate: int) -> Iterator[Any]:
        """Its samples, whatever its header said of their number."""
        count = 0
        for block in recording.blocks(rate):
            count += len(block)
            if count > (self.service.limits.sound + 1) * rate:
                raise self._too_long()
            yield block

    def named(self, name: str) -> "tuple[str, Listener]":
        """The model that is meant."""
        self.service.check_ready()
        if name in self.models:
            return name, self.models[name]
        if len(self.models) == 1 and not any(name in each.places for each in self.service.served):
            return next(iter(self.models.items()))  # clients are made to name one: whisper-1
        other = next((each for each in self.service.served if name in each.places), None)
        what = f"is {with_article(other.task.noun)}" if other else "is not there"
        said = f"model {name[:100]!a} {what}; for this there are {', '.join(self.models)}"
        raise Refusal(404, said, param="model", code="model_not_found")

    def _seated(self, request: Request, heard: Heard) -> Seat:
        """A place in the room for the file, what is told of it, and as long as it lasts itself."""
        seat = self.service.room.enter(long=True)
        request.scope["places"].append(seat)
        seat.hold(heard.size + round(heard.transcript.most) + bounds.SENTENCE)
        self.service.expect(seat, heard.give_up, heard.recording.seconds)
        return seat

    # Turns ------------------------------------------------------------------------------------------

    async def _turns(self, heard: Heard) -> "AsyncIterator[list[Segment]]":
        """The segments of a recording, those of a turn at a time."""
        slow, ask = self.service.slow, heard.ask
        key, alone = (self, Wish(heard.model, off_of(ask.heads_off))), [self.service.limits.tokens]
        try:
            while True:
                if heard.fault is not None:
                    raise heard.fault
                heard.job = slow.submit(key, [heard], alone)
                ((segments, more),) = await heard.job.all()
                yield segments
                if not more:
                    return
        finally:
            if heard.job is not None:
                slow.cancel(heard.job)

    async def _events(self, heard: Heard, seat: Seat) -> AsyncIterator[bytes]:
        """OpenAI's events: a part of the text each, then all of it."""
        first = True
        try:
            async for segments in self._turns(heard):
                for segment in segments:
                    delta = segment.text if first else f" {segment.text}"
                    first = False
                    told = heard.transcript.told(segment) if heard.transcript.verbose else {}
                    yield event("", {"type": "transcript.text.delta", "delta": delta} | told)
            seat.computed()
            yield event("", {"type": "transcript.text.done", "text": heard.transcript.text})
        except Refusal as refusal:
            yield event("", openai_error(refusal))
        except Exception as error:
            fault = Refusal(500, f"it could not be transcribed ({type(error).__name__})")
            yield event("", openai_error(fault))

    def run(self, wish: Wish, texts: Sequence[Any], threads: int) -> list[Any]:
        """Turns, or the JSON of looks."""
        off = {name: list(heads) for name, heads in wish.off}
        if wish.look:
            listener = self.models[wish.model]
            looks = (
                self.task.look(listener, each.samples, off=off, most=bounds.LOOK_NUMBERS) for each in texts
            )
            return [in_json(each.to_dict()) for each in looks]
        with without(off):
            return [self._turn(each) for each in texts]

    def _turn(self, heard: Heard) -> "tuple[list[Segment], bool] | Exception":
        """Segments that were heard within a turn, and whether there may be more."""
        found: list[Segment] = []
        until = time.monotonic() + TURN
        try:
            while time.monotonic() < until:
                segment = next(heard.segments, None)
                if segment is None:
                    heard.recording.close()
                    return found, False
                heard.transcript.add(segment)
                found.append(segment)
        except Refusal as refusal:
            return refusal
        except RegardError as error:
            return wrong("file", str(error))
        return found, True

    # Looking ----------------------------------------------------------------------------------------

    async def look(self, request: Request, fields: dict[str, Any]) -> Response:
        """Where every head listened, hearing a recording; heads can be switched off."""
        service, ask = self.service, Listening.of(fields)
        name, model = self.named(ask.model)
        checked(model.model, ask.heads_off)
        seat = service.room.enter(long=True)
        request.scope["places"].append(seat)
        seat.hold(bounds.LOOK_NUMBERS * bounds.NUMBER)
        sound = await service.desk.do(lambda: self._sound(ask.file, model.rate), long=True)
        job = service.slow.submit((self, Wish(name, off_of(ask.heads_off), look=True)), [sound], [1])
        service.expect(seat, job.give_up)
        try:
            (body,) = await results(request, job, service.slow)
        except RegardError as error:  # nothing was said, or too much
            raise wrong("file", str(error)) from error
        return ready(body)

    def _sound(self, sent: Any, rate: int) -> Sound:
        """The samples of a short recording."""
        import numpy as np

        recording, _ = self._recording(sent)
        parts: list[Any] = []
        try:
            for block in recording.blocks(rate):
                parts.append(block)
                if sum(map(len, parts)) > LOOKED * rate:
                    raise wrong("file", f"it is longer than the {LOOKED:g} seconds that can be looked into")
        except RegardError as error:
            raise wrong("file", str(error)) from error
        finally:
            recording.close()
        return Sound(np.concatenate(parts))
