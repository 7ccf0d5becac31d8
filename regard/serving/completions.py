"""OpenAI's completions for the language models of a server: prompts in, text out as it comes.

`/v1/completions` takes OpenAI's fields and answers in its shape, whole or as server-sent events; ours beside
them are `heads_off` (heads switched off while it writes) and `return_token_ids`. Before this file:
`completion.py`; beneath it: `writing.py`.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from math import isqrt
from typing import TYPE_CHECKING, Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from regard.config.file import read_config
from regard.errors import RegardError
from regard.serving import limits as bounds
from regard.serving import schema
from regard.serving.answers import in_json, openai_error, ready
from regard.serving.completion import Asked, Choice, Completion, Glimpse, Inspection, Loaded, wish_of
from regard.serving.door import event, listening, read, results
from regard.serving.draft import Draft
from regard.serving.engine import check_heads
from regard.serving.family import Family, Place, Route
from regard.serving.limits import Refusal
from regard.serving.scratch import SHARED
from regard.serving.writing import Scribe
from regard.tasks.task import Task, with_article

if TYPE_CHECKING:
    from regard.serving.service import Service

SPARE = 8  # tokens that a text may grow by when it is cut and read again
Result = TypeVar("Result")


class Completions(Family):
    """The language models of a server."""

    look_field = "prompt"

    def __init__(self, service: "Service", task: Task, places: Sequence[Place]) -> None:
        super().__init__(service, task, places)
        self.models: dict[str, Loaded] = {}
        self.scribe = Scribe(service.limits, service.metrics)

    def load(self, place: Place) -> None:
        """As `regard generate` loads it."""
        how = self.service.loading
        writer = self.task.load(place.folder, device=how.device, precision=how.precision, engine=how.engine)
        shape = read_config(place.folder).model
        bound = min(writer.longest or bounds.CONTEXT, bounds.CONTEXT)
        wide = 8 * shape.d_model + 3 * (shape.decoder_d_ff or shape.d_ff)
        cached = 8 * shape.decoder_layers * shape.d_model
        self.models[place.name] = Loaded(place, writer, bound, cached, 4 * wide)

    def engine_threads(self) -> int | None:
        """It has a thread of its own."""
        return 1

    async def warm(self) -> None:
        """A token of each model."""
        self.scribe.start()
        for loaded in self.models.values():
            draft = self._draft(loaded, Completion(max_tokens=1), [loaded.writer.ids("")])
            self.scribe.submit(draft)
            async for _ in draft.news():
                pass

    @property
    def idle(self) -> bool:
        """Whether nothing is written."""
        return self.scribe.idle

    @property
    def waiting(self) -> int:
        """Requests that have not begun."""
        return self.scribe.waiting

    def close(self) -> None:
        """Write no more."""
        self.scribe.close()

    def describe(self, place: Place) -> dict[str, Any]:
        """How long a text can be."""
        loaded = self.models.get(place.name)
        return {"context": loaded.context} if loaded else {}

    def routes(self) -> Sequence[Route]:
        """OpenAI's."""
        told: dict[str, Any] = {"content": {"application/json": {}, "text/event-stream": {}}}
        return (Route("/v1/completions", self.complete, Completion, told, queued=True),)

    # Requests ---------------------------------------------------------------------------------------

    async def complete(self, request: Request) -> Response:
        """Write on; whole, or as it comes."""
        ask = await read(self.service, request, Completion)
        asked = await self._begin(request, ask)
        if ask.stream:
            return StreamingResponse(self._events(asked), media_type="text/event-stream")
        choices = self._choices(asked)
        try:
            async with listening(request, asked.draft.give_up):
                async for news in asked.draft.news():
                    choices[news.row].add(news)
        finally:
            asked.draft.give_up(Refusal(499, "nobody waits for it"))
        asked.written = sum(len(choice.tokens) for choice in choices)
        return ready(await self._told(asked, lambda: in_json(self._whole(asked, choices))))

    async def look(self, request: Request, fields: dict[str, Any]) -> Response:
        """What every head looked at, reading a text; heads can be switched off."""
        ask = Inspection.of(fields)
        self.service.check_ready()
        loaded = self.named(ask.model)
        if len(ask.prompt) > self.service.limits.characters:
            raise _wrong("prompt", f"it has {len(ask.prompt)} characters")
        seat = self.service.room.enter(long=True)
        request.scope["places"].append(seat)
        text, tokens = await self.service.desk.do(lambda: self._text(loaded, ask), long=True)
        off = tuple((name, tuple(sorted(set(heads)))) for name, heads in sorted(ask.heads_off.items()))
        job = self.service.slow.submit((self, Glimpse(loaded.place.name, off)), [text], [tokens])
        self.service.expect(seat, job.give_up)
        try:
            (body,) = await results(request, job, self.service.slow)
        except RegardError as error:  # nothing to look at, or too much
            raise _wrong("prompt", str(error)) from error
        return ready(body)

    def _text(self, loaded: Loaded, ask: Inspection) -> tuple[str, int]:
        """The text to look into and its tokens: what can be told of it, if the client takes less than all."""
        try:
            heads = check_heads(loaded.writer.model, ask.heads_off)
        except RegardError as error:
            raise _wrong("heads_off", str(error)) from error
        (text,) = schema.sound([ask.prompt])
        most = min(loaded.context, isqrt(bounds.LOOK_NUMBERS // max(1, sum(heads.values()))))
        ids = loaded.writer.ids(text)
        if len(ids) > most and ask.slide:
            # The first that is kept may be half a character, which takes more tokens when it is read again.
            text = loaded.writer.tokenizer.decode(ids[-max(1, most - SPARE) :])
            ids = loaded.writer.ids(text)
        if not 1 < len(ids) <= most:
            raise _wrong("prompt", f"it has {len(ids)} tokens; 2 to {most} can be told of in this model")
        return text, len(ids)

    def run(self, wish: Glimpse, texts: Sequence[str], threads: int) -> list[Any]:
        """The JSON of looks."""
        writer, off = self.models[wish.model].writer, {name: list(heads) for name, heads in wish.off}
        looks = (self.task.look(writer, text, tokens=0, off=off, most=bounds.LOOK_NUMBERS) for text in texts)
        with SHARED.taking(2 * bounds.LOOK_BYTES * bounds.LOOK_NUMBERS):
            return [in_json(each.to_dict()) for each in looks]

    async def _begin(self, request: Request, ask: Completion) -> Asked:
        """Find the model, read the prompts, promise memory, and have it written."""
        self.service.check_ready()
        loaded = self.named(ask.model)
        characters = sum(len(prompt) for prompt in ask.prompts)
        if characters > self.service.limits.characters:
            raise _wrong("prompt", f"it is longer than {self.service.limits.characters} characters or tokens")
        seat = self.service.room.enter(long=True)
        request.scope["places"].append(seat)
        starts, echoes = await self.service.desk.do(
            lambda: self._starts(loaded, ask), long=characters > bounds.QUICK
        )
        draft = self._draft(loaded, ask, starts)
        rows, told = len(starts) * ask.n, ask.logprobs is not None
        tokens = ask.max_tokens + (max(map(len, starts)) if ask.echo else 0)
        each = bounds.TOLD + bounds.RUNNER * (ask.logprobs or 0) if told else bounds.WRITTEN
        seat.hold(rows * tokens * each)
        draft.size = loaded.cost(starts, ask.n, ask.max_tokens)
        self.scribe.hold(draft.size)
        self.scribe.submit(draft)
        self.service.expect(seat, draft.give_up)
        self.service.metrics.tokens.labels(loaded.place.name, "read").inc(sum(map(len, starts)))
        return Asked(ask, loaded, draft, echoes, rows * tokens > bounds.SMALL)

    def named(self, name: str) -> Loaded:
        """The model that is meant."""
        if name in self.models:
            return self.models[name]
        there = ", ".join(self.models)
        if not name and len(self.models) == 1:
            return next(iter(self.models.values()))
        other = next((each for each in self.service.served if name in each.places), None)
        what = f"it is {with_article(other.task.noun)}" if other else "there is no such model"
        said = f"model {name[:100]!a} cannot write on, {what}; there are {there}"
        raise Refusal(404, said, param="model", code="model_not_found")

    def _starts(self, loaded: Loaded, ask: Completion) -> tuple[list[list[int]], list[str]]:
        """The ids of the prompts, if what is asked fits; and their texts, where they are told again."""
        if ask.best_of not in (None, ask.n):
            raise _wrong("best_of", "it is not supported; leave it out")
        if ask.suffix:
            raise _wrong("suffix", "it is not supported: these models write on, they do not fill in")
        if len(ask.prompts) * ask.n > bounds.ROWS:
            raise _wrong(
                "n", f"{len(ask.prompts)} prompts and n={ask.n}: at most {bounds.ROWS} texts at once"
            )
        starts = [
            loaded.writer.ids(schema.sound([each])[0]) if isinstance(each, str) else list(each)
            for each in ask.prompts
        ]
        for name, ids in (("prompt", [i for start in starts for i in start]), ("logit_bias", ask.logit_bias)):
            if wrong := [number for number in ids if not 0 <= number < loaded.vocabulary]:
                raise _wrong(name, f"there is no token {wrong[0]}; there are {loaded.vocabulary}")
        longest = max(map(len, starts))
        if longest + max(0, ask.max_tokens - 1) > loaded.context:
            said = f"{longest} tokens and {ask.max_tokens} more; the model has {loaded.context} places"
            raise Refusal(400, f"Invalid request: {said}", param="max_tokens", code="context_length_exceeded")
        try:
            check_heads(loaded.writer.model, ask.heads_off)
        except RegardError as error:
            raise _wrong("heads_off", str(error)) from error
        given = zip(ask.prompts, starts, strict=True)
        echoes = [each if isinstance(each, str) else loaded.writer.tokenizer.decode(s) for each, s in given]
        return starts, echoes if ask.echo else []

    def _draft(self, loaded: Loaded, ask: Completion, starts: Sequence[Sequence[int]]) -> Draft:
        return Draft(
            loaded.writer,
            starts,
            wish_of(ask),
            top=ask.logprobs,
            echo=ask.echo,
            tokens=ask.max_tokens,
            off={name: sorted(set(heads)) for name, heads in ask.heads_off.items()},
        )

    def _choices(self, asked: Asked) -> list[Choice]:
        """The texts before anything is written: their prompts, where they are told again."""
        rows = range(len(asked.draft.starts) * asked.ask.n)
        echoes = asked.echoes or [""] * len(asked.draft.starts)
        return [Choice(row, echoes[row // asked.ask.n]) for row in rows]

    def _whole(self, asked: Asked, choices: Sequence[Choice]) -> dict[str, Any]:
        for choice in choices:
            choice.ended = choice.ended or "length"  # where nothing was to be written
        trees = [asked.tree(choice) for choice in choices]
        return {**asked.head, "choices": trees, "usage": asked.usage}

    async def _told(self, asked: Asked, say: Callable[[], Result]) -> Result:
        """The answer; where it is long, the event loop goes on meanwhile."""
        return await self.service.desk.do(say, long=True) if asked.long else say()

    async def _events(self, asked: Asked) -> AsyncIterator[bytes]:
        """A `data:` for every token, then `[DONE]`."""
        try:
            for choice in self._choices(asked) if asked.ask.echo else ():
                yield self._chunk(asked, choice)
            async for news in asked.draft.news():
                asked.written += len(news.tokens)
                part = Choice(news.row)
                part.add(news)
                yield await self._told(asked, partial(self._chunk, asked, part))
            if asked.ask.stream_options.get("include_usage") is True:
                yield event("", {**asked.head, "choices": [], "usage": asked.usage})
            yield b"data: [DONE]\n\n"
        except Refusal as refusal:
            yield event("", openai_error(refusal))
        except Exception as error:
            yield event("", openai_error(Refusal(500, f"it could not be written ({type(error).__name__})")))
        finally:
            asked.draft.give_up(Refusal(499, "nobody waits for it"))  # the client went away

    def _chunk(self, asked: Asked, part: Choice) -> bytes:
        return event("", {**asked.head, "choices": [asked.tree(part)]})


def _wrong(name: str, message: str) -> Refusal:
    return Refusal(400, f"Invalid request: {name}: {message}", param=name)
